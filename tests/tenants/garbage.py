"""Lines that no tenant may say, or not at any time."""

GARBAGE = {
    "not-json": b"hello there\n",
    "binary": bytes(range(256)) * 4 + b"\n",
    "list": b"[1, 2]\n",
    "unknown": b'{"kind":"greetings"}\n',
    "hello-again": b'{"kind":"hello","tenant":0,"rank":0,"world":1,"pid":1}\n',
    "go": b'{"kind":"go","t0_ns":0,"number":1,"repeat":1,"skip":0}\n',
    "observation": b'{"kind":"observation","index":0,"start_ns":1,"end_ns":2,"items":1,"data_wait_ns":0}\n',
    "done": b'{"kind":"done"}\n',
    "record": b'{"kind":"record","record":{}}\n',
    "nested": b'{"kind":"record","record":{"observed":{"x":' + b"[" * 900 + b"]" * 900 + b"}}}\n",
    "completed": b'{"kind":"failed","outcome":"completed","message":"all is well"}\n',
    "huge-integer": b'{"kind":"ready","number":' + b"9" * 40 + b',"repeat":1,"skip":0,"warm_up_ns":[]}\n',
    "no-work": b'{"kind":"ready","number":0,"repeat":1,"skip":0,"warm_up_ns":[]}\n',
}
