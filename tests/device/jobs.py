"""Every task that runs on a device, with flags that make it small. They are of the null device and of a real one."""

from __future__ import annotations

TEXT, IMAGE, SPEECH = "natural_language_processing", "image_classification", "speech_synthesis"
DECODER = "--context 16 --layers 2 --width 32 --heads 4 --kv-heads 2 --inner 48 --words 256"

SMALL: dict[str, str] = {
    "fast_neural_style/neural_style": "--batch-size 1 --image-size 32",
    "generative_adversarial_networks/dcgan": "--batch-size 4 --imageSize 32 --ngf 8 --ndf 8",
    "graph_learning/graphsage": "--batch-size 8 --graph-nodes 200 --hidden 8 --workers 0",
    f"{IMAGE}/convnets": "--batch-size 2 --arch resnet18 --size 32",
    f"{IMAGE}/scaling": "--batch-size 2 --network resnet18 --size 32",
    f"{IMAGE}/vit": "--batch-size 2 --size 32 --layers 2 --width 32 --heads 4",
    "image_generation/diffusion_transformer": "--batch-size 2 --side 8 --patch 4 --layers 2 --width 32 --heads 4",
    f"{TEXT}/gpt": "--batch-size 2 --context 16 --layers 2 --width 32 --heads 4 --words 256",
    f"{TEXT}/llama": f"--batch-size 2 {DECODER}",
    f"{TEXT}/lora": f"--batch-size 2 {DECODER}",
    f"{TEXT}/moe": "--batch-size 2 --context 16 --layers 2 --width 32 --heads 4 --experts 4 --active 2 --inner 24 "
    "--words 256",
    f"{TEXT}/rnn_translator": "--batch-size 2 --hidden 16 --words 256",
    f"{TEXT}/transformer_xl": "--batch-size 2 --words 256 --layers 2 --width 32 --heads 4 --inner 32 --target 8 "
    "--memory 8",
    f"{TEXT}/word_language_model": "--batch-size 4 --words 256 --emsize 16 --nhid 16 --bptt 5",
    "object_detection/mask_rcnn": "--batch-size 1 --height 64 --width 96 --regions 8 --objects 2",
    "object_detection/single_stage_detector": "--batch-size 1",
    "question_answering/bert": "--batch-size 2 --words 256 --sequence 32 --layers 2 --width 32 --heads 4 --inner 64",
    "recommendation/dlrm": "--batch-size 16 --rows 64",
    "recommendation/neural_collaborative_filtering": "--batch-size 64",
    "regression/polynome": "--batch-size 64",
    "reinforcement/atari": "--num-processes 2 --num-steps 2 --num-mini-batch 1 --ppo-epoch 1",
    "reinforcement/cart_pole": "",
    "reinforcement/ppo": "--batch-size 32 --steps 4 --units 16",
    "speech_recognition/whisper": "--batch-size 2 --mels 8 --frames 24 --tokens 12 --words 256 --layers 2 --width 32 "
    "--heads 4",
    f"{SPEECH}/tacotron2": "--batch-size 2 --characters 9 --frames 8 --encoder 16 --units 16",
    f"{SPEECH}/waveglow": "--batch-size 2 --segment 512 --bands 4 --steps 5 --layers 2 --units 8",
    "super_resolution/subpixel_convolution": "--batch-size 2 --crop 16",
    "text_generation/decode": f"--batch-size 2 {DECODER}",
    "text_generation/prefill": f"--batch-size 2 {DECODER}",
    "time_sequence_prediction/lstm": "--waves 8 --length 20",
    "variational_auto_encoder/auto_encoding_variational_bayes": "--batch-size 16",
}

LSTM_LAYERS = ("time_sequence_prediction/lstm", "--waves 8 --length 20 --recurrence lstm")

ATARI, CART, MASK_RCNN = "reinforcement/atari", "reinforcement/cart_pole", "object_detection/mask_rcnn"
DLRM, MOE, WLM = "recommendation/dlrm", f"{TEXT}/moe", f"{TEXT}/word_language_model"
OF_ALL = ("fp32", "tf32", "bf16", "fp16")
WAITING: dict[str, dict[str, int]] = {
    ATARI: dict.fromkeys(OF_ALL, 4),
    CART: dict.fromkeys(OF_ALL, 2),
    DLRM: {"fp16": 1},
    MASK_RCNN: dict.fromkeys(OF_ALL, 30),
    MOE: dict.fromkeys(("fp32", "tf32", "fp16"), 12),
    WLM: dict.fromkeys(OF_ALL, 1),
}
"""How often a step waits for the device at the most, by precision; every other one never does."""
REASONS = {
    ATARI: "asks the device for the actions that its emulators take next",
    CART: "asks the device for the action that its pole takes next",
    DLRM: "torch's gradient scaler counts the rows of sparse gradients",
    MASK_RCNN: "torchvision's heads: how many boxes are left decides shapes",
    MOE: "torch has grouped products for bf16 alone, and asks for each group's rows elsewhere: six times a layer",
    WLM: "one step of a run: cuDNN makes its states of dropout",
}
NOT_IN_HALF = {DLRM: "Tables have no fp32 copies to be stepped."}
UNRECORDED = {
    ATARI: "A step that acts in an environment cannot be replayed.",
    CART: "A step that acts in an environment cannot be replayed.",
    MASK_RCNN: "This step cannot be recorded in a CUDA graph: Cannot copy between CPU and CUDA tensors during CUDA "
    "graph capture unless the CPU tensor is pinned.",
    WLM: "Its steps keep state from one to the next, which a graph would not.",
}
"""Tasks that --graph is `unsupported` for, and the sentence that says why; others in some precision."""

ARTEFACTS = {"padding_counted", "mfu_impossible", "credited", "untimed"}
"""Errors that are of the null device, where every number reads as zero and no step takes time."""
