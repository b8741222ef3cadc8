#!/usr/bin/env python3
"""Decoders that do what no decoder should, for plugin_test: misbehaving.py HOW [SECONDS]. Most go wrong on 03 00 00 00 00 00."""
import os
import signal
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import decoder  # noqa: E402

HOW = sys.argv[1]
SECONDS = sys.argv[2] if len(sys.argv) > 2 else "98765"
BAD = bytes([3, 0, 0, 0, 0, 0])
source, sink = sys.stdin.buffer, sys.stdout.buffer


def say(data):
    sink.write(data)
    sink.flush()


def words_of(packed):
    halves = struct.unpack("<%dH" % (len(packed) // 2), packed)
    numbers = []
    for at in range(0, len(halves), 3):
        numbers += decoder.decode(*halves[at : at + 3])
    return struct.pack("<%df" % len(numbers), *numbers)


def forever():
    while True:
        time.sleep(1)


def leave_one(arguments):
    """Starts a process that no group, session, parent or environment ties to this one."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(3):
                os.close(number)
            os.execve("/bin/sleep", arguments, {})
        os._exit(0)
    os.wait()


if HOW == "ends_at_once":
    sys.exit(0)
if HOW == "early":
    say(b"hello\n")
if HOW == "stubborn":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
source.readline()
if HOW == "garbage":
    say(b"\x1b[31m\xff\x00hello\n")
    forever()
if HOW == "endless":
    say(b"x" * 10000)
    forever()
if HOW == "other_version":
    say(b"ready 2\n")
    forever()
if HOW == "eager":
    say(b"ready 1\n" + bytes(4))
    forever()
if HOW == "wrong_size":
    say(b"ready 1 packed=8\n")
    forever()
say(b"ready 1\r\n" if HOW == "carriage" else b"ready 1\n")
if HOW == "deaf":  # closes its input, lives on
    os.close(0)
    forever()
if HOW == "deaf_and_gone":
    os.close(0)
    sys.exit(4)
if HOW == "never_reads":
    forever()
if HOW == "shouts":
    sys.stderr.write("shouting\n" * 1200000)
    sys.stderr.flush()
if HOW in ("daemon", "daemon_and_hangs"):
    leave_one(["sleep", SECONDS])
if HOW == "grandchild":
    subprocess.Popen(["sleep", SECONDS], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
if HOW == "grandchild_with_output":
    subprocess.Popen(["sleep", SECONDS], stdin=subprocess.DEVNULL)
while head := source.read(4):
    (count,) = struct.unpack("<I", head)
    packed = source.read(6 * count)
    if HOW == "slow":
        time.sleep(0.25 * count)
    if HOW == "stops_reading":
        os.close(0)
        forever()
    values = [packed[6 * i : 6 * i + 6] for i in range(count)]
    words = words_of(packed)
    if BAD in values:
        if HOW == "crashes":
            os.kill(os.getpid(), signal.SIGSEGV)
        if HOW == "kills_parent":
            os.kill(os.getppid(), signal.SIGKILL)
            forever()
        if HOW == "raises":
            raise ValueError("no such value")
        if HOW in ("hangs", "stubborn", "daemon_and_hangs"):
            forever()
        if HOW == "gives_up":
            sys.exit(0)
        if HOW == "counts_nothing":
            say(bytes(4))
            forever()
        if HOW == "counts_many":
            say(struct.pack("<I", 0x7FFFFFFF) + words)
            forever()
        if HOW == "counts_negative":
            say(struct.pack("<i", -1) + words)
            forever()
        if HOW == "too_many_words":
            say(head + words + words)
            forever()
        if HOW == "half_and_closed":
            say(head + words[: len(words) // 2])
            os.close(1)
            forever()
        if HOW == "closes_output":
            os.close(1)
            forever()
        if HOW == "short":
            say(head + words[:-1])
            sys.exit(0)
        if HOW == "stalls":
            say(head + words[:-1])
            forever()
        if HOW == "hangs_together" and count > 1:
            forever()
        if HOW == "miscounts":
            say(struct.pack("<I", count - 1) + words[:-16])
            forever()
        if HOW == "chatty":
            say(head + words + b"done\n")
            continue
        if HOW == "is_wrong":
            at = values.index(BAD)
            words = bytearray(words)
            words[16 * at + 8] ^= 1
    say(head + words)
if HOW == "late":
    say(b"bye")
if HOW == "exits_3":
    sys.exit(3)
if HOW in ("lingers", "stubborn"):
    forever()
if HOW == "fails_at_end":
    sys.exit("no good end")
