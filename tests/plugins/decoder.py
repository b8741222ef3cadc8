#!/usr/bin/env python3
"""An example of a decoder that bitwitness starts: the six-byte rotation of Shaun White Skateboarding (seed 000, Track blocks,
kind 4), written from its description alone with the standard library. harness/plugins/README.md has the framing.

Use: bitwitness verify --routine packed_quat48 --decoder 'exec:python3 decoder.py'
"""
import math
import struct
import sys

PACKED = 6
WORDS = 4
DESCRIPTION = "packed=6 words=x,y,z,w kind=f32 fields=a:15,index_low:1,b:15,index_high:1,c:15,unused:1"
SCALE = float.fromhex("0x1.6a0cbap-15")  # the f32 nearest sqrt(2) / 32767
HALF_ROOT = float.fromhex("0x1.6a09e6p-1")  # the f32 nearest sqrt(1/2)
F32 = struct.Struct("<f")


def f32(number):
    """Rounds to the nearest f32, as packing does."""
    return F32.unpack(F32.pack(number))[0]


# Fifteen bits have 32,768 values: each is rounded once.
KEPT = [f32(f32(bits * SCALE) - HALF_ROOT) for bits in range(0x8000)]


def decode(first, second, third):
    a, b, c = KEPT[first & 0x7FFF], KEPT[second & 0x7FFF], KEPT[third & 0x7FFF]
    words = [a, b, c]
    index = first >> 15 | second >> 15 << 1
    words.insert(index, math.sqrt(max(0.0, 1.0 - a * a - b * b - c * c)))
    return words


def read_exactly(stream, size):
    data = stream.read(size)
    if len(data) not in (0, size):
        sys.exit("the input ends inside of a batch")
    return data


def main():
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    greeting = source.readline().split()
    if greeting != [b"bitwitness-decoder", b"1", b"%d" % PACKED, b"%d" % WORDS]:
        sys.exit("cannot decode what this greeting asks for: %r" % greeting)
    sink.write(b"ready 1 " + DESCRIPTION.encode() + b"\n")
    sink.flush()
    while head := read_exactly(source, 4):
        (count,) = struct.unpack("<I", head)
        halves = struct.unpack("<%dH" % (3 * count), read_exactly(source, PACKED * count))
        numbers = []
        for at in range(0, 3 * count, 3):
            numbers += decode(*halves[at : at + 3])
        sink.write(head + struct.pack("<%df" % (WORDS * count), *numbers))
        sink.flush()


if __name__ == "__main__":
    main()
