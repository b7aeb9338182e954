#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Writes the seeds of corpus/: one small valid (or nearly valid) input for every branch worth starting from.
#
# Run it from anywhere; it replaces the files it names and leaves all others, so findings (crash-*, slow-*) stay. The
# binary formats are packed here by hand from docs/, not by the library: seeds made by our own encoder would share its
# mistakes.
import hashlib
import hmac
import pathlib
import struct

from make_corpus_cassini import cassini_abi, cassini_ring, cassini_socket, doorbell_store

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"


def write(target, seeds):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in seeds.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def endpoint():
    return {
        "v4": "127.0.0.1:7471",
        "name": "node-7.example.org:65535",
        "port": ":1",
        "host": "node",
        "v6": "[fe80::1%eth0]:9",
        "v6-bare": "[::1]",
        "mapped": "[::ffff:127.0.0.1]:80",
        "open-bracket": "[::1",
        "two-colons": "a:b:1",
        "port-large": "h:65536",
        "nul": "127.0.0.1\0x:1",
    }


def values():
    return {
        "bytes": "4096",
        "kib": "64KiB",
        "tera": "8388607T",
        "int64": "9223372036854775807",
        "over": "9223372036854775808",
        "us": "250us",
        "fraction": "1.0000000019s",
        "hours": "2562047h",
        "edge": "9223372036.854775807s",
        "minus": "-1s",
        "zero": "0",
    }


def options():
    return {
        "plain": "PATH=/bin\nSTRAIT_LOG=debug\nSTRAIT_RETRIES=5",
        "caller": "+deadline=1.5s\n+accelerator_memory=64K\n+log=error",
        "both": "STRAIT_SPIN=0\n+spin=1ms",
        "unknown": "STRAIT_RETRYS=5\nSTRAIT_Q=",
        "unknown-caller": "+dead_line=1s",
        "wrong": "STRAIT_PROGRESS=magic",
        "choice": "STRAIT_PROGRESS=eventfd\nSTRAIT_CARRIER=grant",
        "flags": "+allow_staging=yes\nSTRAIT_ACCELERATOR_EXPORT=off",
        "range": "STRAIT_LANE_DEPTH=8192\n+rnr_retries=8",
        "secret": "STRAIT_SECRET=a=b c\n+plugins=/a:/b",
        "odd": "STRAIT_\n=\n+\n+=\nSTRAIT_LOG",
    }


def record():
    place = '{"path":["pci0000:17","0000:17:01.0","0000:1b:00.0"],"numa_node":0}'
    gpu = f'{{"name":"cuda:0","kind":"cuda","accelerator":true,"exports_fd":true,"can_ipc":true,"place":{place}}}'
    host = '{"name":"host","kind":"host"}'
    nic = f'{{"name":"mlx5_0","imports_fds":true,"has_packets":true,"grants":false,"place":{place}}}'
    return {
        "plain": f'{{"name":"a:1","host":"00ff","process":7,"memories":[{host},{gpu}],"nics":[{nic}]}}',
        "nothing": '{"memories":[],"nics":[]}',
        "no-nics": f'{{"memories":[{gpu}]}}',
        "control": '{"memories":[{"name":"a\\u0007"}],"nics":[]}',
        "number": '{"process":-1,"memories":[],"nics":[]}',
        "node": '{"memories":[{"name":"a","place":{"numa_node":1e99,"path":[]}}],"nics":[]}',
    }


def ticket():
    # The key, issuer and clock that ticket.cpp uses.
    key = b"Key" + bytes(29)
    node = b"seed" + bytes(12)
    now = 1_700_000_000_000_000_000

    def make(expires, magic=b"STRT", version=1, issuer=node):
        body = magic + struct.pack(">HH", version, 0) + issuer
        body += struct.pack(">QQQQqII", 7, 4096, 65536, 3, expires, 0b111, 0) + b"n" * 24
        return body + hmac.new(key, body, hashlib.sha256).digest()

    good = make(now + 10**9)
    fields = struct.pack("<QQQQqI", 7, 0, 4096, 1, now + 1, 7) + b"n" * 24
    return {
        "good": b"\0" + good,
        "expired": b"\0" + make(now),
        "version": b"\0" + make(now + 1, version=2),
        "magic": b"\0" + make(now + 1, magic=b"TRTS"),
        "issuer": b"\0" + make(now + 1, issuer=bytes(16)),
        "short": b"\0" + good[:127],
        "long": b"\0" + good + b"\0",
        "issue": b"\1" + struct.pack("<H", 1023) + fields,
        "issue-low": b"\1" + struct.pack("<H", 64) + fields,
    }


def rendezvous():
    def frame(kind, fields=b"", number=1):
        body = struct.pack(">HHI", kind, 0, number) + fields
        return struct.pack(">I", len(body)) + body

    def text(words):
        return struct.pack(">H", len(words)) + words

    nonce = bytes(range(32))
    identity = b"N" * 16 + struct.pack(">i", 4242) + b"H" * 16 + text(b"node-a")
    target = struct.pack(">IQQQQIIQ", 7, 1, 2, 0x7F0000000000, 65536, 0x1234, 0x5678, 0x7F0000010000)
    return {
        "hello": frame(1, struct.pack(">H", 1) + nonce),
        "challenge": frame(2, struct.pack(">H", 1) + nonce),
        "proof": frame(3, nonce),
        "connect-request": frame(4, b"A" * 64 + struct.pack(">IBI", 0x42, 0, 256) + identity),
        "connect-reply": frame(5, b"A" * 64 + struct.pack(">I", 0x43) + identity),
        "ready": frame(6, struct.pack(">I", 0x42)),
        "done": frame(7),
        "lookup": frame(8, text(b"kv/0")),
        "lookup-reply": frame(9, target),
        "redeem": frame(10, b"T" * 128),
        "redeem-reply": frame(11, target),
        "bye": frame(12),
        "refusal": frame(13, struct.pack(">B", 6) + text(b"gone") + text(b"")),
        "describe": frame(14),
        "described": frame(15, text(b'{"memories":[],"nics":[]}')),
        "count": frame(16),
        "counted": frame(17, text(b'{"counters":{},"nics":[]}')),
        "unknown": frame(18),
        "type-zero": frame(0),
        "huge": struct.pack(">I", 0xFFFFFFFF) + bytes(12),
        "trailing": frame(7, b"\0"),
        "short": frame(8, struct.pack(">H", 500) + b"kv"),
    }


def wqe():
    def control(opcode, segments, opmod=0, flags=8):
        # wqe.cpp puts queue and index in when bit 4 of the shape is set.
        return struct.pack(">IIBBBBI", opmod << 24 | opcode, segments, 0, 0, 0, flags, 0x11223344)

    raddr = struct.pack(">QII", 0x7F0000001000, 0x1234, 0)
    data = struct.pack(">IIQ", 4096, 0x99, 0x7F0000002000)

    def inline(payload):
        padded = struct.pack(">I", 0x80000000 | len(payload)) + payload
        return padded + bytes(-len(padded) % 16)

    def send(body, log_blocks=3, available=8, index=0, patch=16):
        return bytes([patch | log_blocks, available]) + struct.pack(">H", index) + body

    def atomic(width):
        return struct.pack(">IIQ", width, 0x99, 0x7F0000002000)

    # What UMR writes: which parts of the key's context count, that context, and what the key is made of.
    def umr(parts=b"", length=0, rights=0x78, flags=0x80, mask=0x203C2000, free=0, key=0x1101):
        parts += bytes(-len(parts) % 64)
        body = struct.pack(">BxxxHHQ32x", flags, len(parts) // 16, 0, mask | (1 if parts else 0))
        body += struct.pack(">BxBxIIIQQ32x", free, rights, 0xFFFFFF00 | key & 0xFF, 0, 0, 0, length)
        head = control(0x25, 1 + (len(body) + len(parts)) // 16)
        return send(head[:12] + struct.pack(">I", key) + body + parts)

    def part(length, address, key=0x1001):
        return struct.pack(">IIQ", length, key, address)

    def block(rounds, *entries):
        head = struct.pack(">IIIHH", sum(length for length, _, _ in entries), 0x400, rounds, 0, len(entries))
        return head + b"".join(struct.pack(">HHIQ", stride, length, 0x1001, at) for length, stride, at in entries)

    receive = struct.pack(">IIQ", 1024, 0x99, 0x7F0000003000)
    terminator = struct.pack(">IIQ", 0, 0x100, 0)
    return {
        "nop": send(control(0x00, 1)),
        "write": send(control(0x08, 3) + raddr + data),
        "write-inline": send(control(0x08, 3) + raddr + inline(b"8 bytes!")),
        "write-inline-wraps": send(control(0x08, 11) + raddr + inline(b"i" * 140), index=6),
        "write-imm": send(control(0x09, 4) + raddr + data + data),
        "send": send(control(0x0A, 2) + data, index=0xFFFF),
        "send-imm": send(control(0x0B, 2) + data),
        "send-inval": send(control(0x01, 1)),
        "read": send(control(0x10, 3) + raddr + data),
        "read-inline": send(control(0x10, 3) + raddr + inline(b"no")),
        "swap": send(control(0x11, 4) + raddr + struct.pack(">QQ", 1, 2) + atomic(8)),
        "add": send(control(0x12, 4) + raddr + struct.pack(">QQ", 1, 0) + atomic(8)),
        "masked-add-4": send(control(0x15, 4, 8) + raddr + struct.pack(">IIQ", 1, 0, 0) + atomic(4)),
        "masked-add-8": send(control(0x15, 4, 9) + raddr + struct.pack(">QQ", 1, 0) + atomic(8)),
        "masked-swap-4": send(control(0x14, 4, 8) + raddr + struct.pack(">IIII", 1, 2, 3, 4) + atomic(4)),
        "masked-swap-8": send(control(0x14, 5, 9) + raddr + struct.pack(">QQQQ", 1, 2, 3, 4) + atomic(8)),
        "longest": send(control(0x08, 63) + raddr + data * 61, log_blocks=4, available=16),
        "too-long-for-ring": send(control(0x08, 63) + raddr + data * 61, log_blocks=1, available=16),
        "unpublished": send(control(0x08, 63) + raddr + data * 61, log_blocks=4, available=2),
        "nothing-published": send(control(0x00, 1), available=0),
        "no-segments": send(control(0x0A, 0)),
        "wrong-queue": send(control(0x0A, 2) + data, patch=0),
        "empty-piece": send(control(0x0A, 2) + struct.pack(">IIQ", 0, 1, 2)),
        "over-1-gib": send(control(0x0A, 3) + struct.pack(">IIQ", 1 << 30, 1, 2) * 2),
        "inline-runs-out": send(control(0x0A, 2) + struct.pack(">I", 0x80000000 | 500)),
        "umr": send(control(0x25, 3) + raddr + data),
        "umr-list": umr(part(8, 0x1000) + part(100, 0x1F00) + part(9, 0x1800), 117),
        "umr-list-short": umr(part(8, 0x1000) + part(100, 0x1FF0), 200),
        "umr-list-itself": umr(part(64, 0, 0x1101), 64),
        "umr-repeat": umr(block(20, (8, 10, 0x1000), (5, 5, 0x1800)), 260),
        "umr-repeat-in-place": umr(block(0xFFFFFFFF, (3, 0, 0x1FFD), (1, 1, 0x1000)), 1 << 34),
        "umr-rights": umr(rights=0x08),
        "umr-length": umr(length=1, mask=0x203C2001),
        "umr-start": umr(part(4096, 0x1000), 4096, mask=0x203C2040),
        "umr-frees": umr(flags=0x98, mask=0x20006000, free=0x40),
        "umr-signature": umr(part(512, 0x1000), 512, mask=0x203C3000),
        "receive": send(receive + terminator, available=2, patch=8),
        "receive-full": send(receive * 4, available=2, patch=8),
        "receive-inline": send(inline(b"no") + terminator, available=2, patch=8),
        "receive-empty": send(struct.pack(">IIQ", 0, 0x99, 0), available=2, patch=8),
    }


def bth(opcode, pad=0, qpn=0x11, psn=3, flags=0x40, key=0xFFFF, ack=0x80):
    return struct.pack(">BBHII", opcode, flags | pad << 4, key, qpn, ack << 24 | psn)


RETH = struct.pack(">QII", 0x1000, 0x1234, 3)
AETH = struct.pack(">I", 0x1F << 24 | 5)


def packet():
    def seed(body, shape=2):
        return bytes([shape]) + body + bytes(4)

    atomic = struct.pack(">QIQQ", 0x1000, 0x1234, 7, 8)
    return {
        "send-first": seed(bth(0x00) + b"s" * 256),
        "send-only-imm": seed(bth(0x05, pad=3) + b"\1\2\3\4" + b"x" + bytes(3), 3),
        "send-inval": seed(bth(0x17) + struct.pack(">I", 0x99)),
        "write-only": bytes([4]) + bth(0x0A, pad=1) + RETH + b"xyz\0" + bytes.fromhex("fdd958cf"),
        "write-only-imm": seed(bth(0x0B) + RETH + b"\1\2\3\4" + b"y" * 8, 6),
        "read-request": seed(bth(0x0C) + RETH),
        "read-response": seed(bth(0x10) + AETH + b"data", 7),
        "ack": seed(bth(0x11, ack=0) + AETH),
        "atomic-ack": seed(bth(0x12) + AETH + struct.pack(">Q", 42)),
        "compare-swap": seed(bth(0x13) + atomic),
        "uc-write": seed(bth(0x26) + RETH + b"u" * 64, 3),
        "ud": seed(bth(0x64) + struct.pack(">II", 0x80010000, 0x77) + b"datagram", 3),
        "cnp": seed(bth(0x81, flags=0, ack=0) + bytes(16), 0),
        "version": seed(bth(0x04, flags=1)),
        "key": seed(bth(0x04, key=0x1234)),
        "pad-only": seed(bth(0x04, pad=3)),
        "flush": seed(bth(0x1C) + bytes(20)),
        "short": bytes([0]) + bth(0x04),
    }


def live_packet():
    # Steps of live_packet.cpp. Queue pairs: 0 reliable, 1 allows nothing, 2 failed, 3 not connected, 4 UC, 5 UD, 6 XRC
    # that receives, 7 XRC that sends. Shared receive queues: 0 and 1 are of 6's domain, 2 of another, 3 of none.
    def made(opcode, psn=0, qp=0, flags=1, where=0x1000, length=8, srq=None):
        names = opcode >> 5 == 5 and opcode & 0x1F not in (0x0D, 0x0E, 0x0F, 0x10, 0x11, 0x12)
        packet = struct.pack(">BBBBbHH", 0, qp, opcode, flags, psn, where, length)
        return packet + (bytes([srq or 0]) if names else b"")

    def post(opcode, length=600, qp=0):
        return struct.pack(">BBBH", 5, qp, opcode, length - 1)

    def receive(qp=0, length=4096):
        return struct.pack(">BBH", 6, qp, length - 1)

    run, revoke, drop_shared = b"\x0f", b"\xff", b"\xf7"
    aligned = 0x11

    def ack(psn, syndrome=0x1F):
        return made(0x11, psn, where=syndrome)

    return {
        "write": b"\0" + made(0x0A) + made(0x06, length=600) + made(0x07) + made(0x08, length=88) + run,
        "write-duplicate": b"\0" + made(0x0A) + run + made(0x0A, -1) + run + made(0x0A, 3) + made(0x0A, 4) + run,
        "write-guard": b"\0" + made(0x0A, where=0x0FF8, length=16) + run,
        "write-read-only": b"\0" + made(0x0A, flags=5, where=0x4000) + run,
        "write-imm": b"\2" + made(0x0B) + run + receive() + made(0x0B) + run,
        "send": b"\0" + made(0x04) + receive() + made(0x00) + made(0x01) + made(0x03, length=9) + run,
        "send-too-large": b"\0" + receive(length=300) + made(0x00) + made(0x02, length=200) + run,
        "send-bad-receive": b"\0" + receive(qp=0x80) + made(0x04) + run,
        "invalidate": b"\0" + receive() + made(0x17) + run + made(0x0A) + run,
        "read": b"\1" + made(0x0C, length=4000) + run + made(0x0C, -16, length=4000) + made(0x0C, -1, length=256) + run,
        "read-revoked": b"\0" + made(0x0C, length=8000) + made(0x0C, length=8000) + made(0x0C, length=8000) + run + revoke + run,
        "atomic": b"\0" + made(0x14, flags=aligned) + run + made(0x14, -1, flags=aligned) + made(0x13, flags=aligned) + run,
        "atomic-guard": b"\0" + made(0x14, flags=aligned, where=0x3000) + run,
        "denied": b"\0" + made(0x0A, qp=1) + made(0x0C, qp=1) + run,
        "failed": b"\0" + made(0x0A, qp=2) + made(0x0A, qp=3) + run,
        "uc": b"\0" + receive(qp=4) + made(0x20, qp=4) + made(0x22, 1, qp=4) + made(0x24, qp=4) + made(0x2A, qp=4) + run,
        "ud": b"\1" + receive(qp=5) + made(0x64, qp=5, length=99) + made(0x65, qp=5, flags=64) + run,
        "requester": b"\0" + post(0) + post(4) + post(5) + run + ack(2) + made(0x10, 3) + run,
        "requester-read": b"\0" + post(4) + run + made(0x0D) + made(0x0E) + made(0x0F, length=88) + run,
        "requester-atomic": b"\0" + post(5) + post(6) + run + made(0x12) + made(0x12) + run,
        "requester-nak": b"\0" + post(2) + post(2) + run + ack(1, 0x60) + run + ack(1, 0x21) + run + ack(0, 0x62) + run,
        "requester-ahead": b"\0" + post(4) + post(0) + run + ack(3) + ack(1) + ack(100) + run + made(0x0F, 2, length=88),
        "requester-revoked": b"\0" + post(0, 4000) + post(4) + revoke + run + made(0x0D) + run,
        "cnp": b"\0" + post(0, 4000) + made(0x81) * 6 + run + made(0x0A, qp=0x80) + run,
        "raw": b"\0" + struct.pack(">BBB", 4, 0, 40) + bth(0x0C, psn=0xFFFFFE) + RETH + bytes(4),
        "raw-short": b"\0" + struct.pack(">BBB", 4, 4, 16) + bth(0x24, psn=0xFFFFFE),
        "xrc": b"\0" + receive(6) + receive(6 | 8) + made(0xA4, qp=6, srq=1) + made(0xA0, qp=6) + made(0xA1, qp=6, srq=1) +
               made(0xA3, qp=6, length=9) + run,
        "xrc-memory": b"\1" + made(0xAA, qp=6) + made(0xAC, qp=6, length=4000) + made(0xB4, qp=6, flags=aligned, srq=1) + run +
                      made(0xB4, -1, qp=6, flags=aligned) + run,
        "xrc-no-receive": b"\0" + made(0xA4, qp=6, srq=1) + run + receive(6) + made(0xA4, qp=6) + run,
        "xrc-not-its": b"\0" + receive(6 | 16) + made(0xA4, qp=6, srq=2) + run,
        "xrc-ordinary": b"\0" + receive(6 | 24) + made(0xA4, qp=6, srq=3) + run,
        "xrc-unknown": b"\0" + made(0xAA, qp=6, srq=200) + run,
        "xrc-dropped": b"\0" + receive(6 | 8) + made(0xA0, qp=6, srq=1) + run + drop_shared + made(0xA2, qp=6) + run,
        "xrc-dropped-named": b"\0" + receive(6 | 8) + drop_shared + made(0xA4, qp=6, srq=1) + run,
        "xrc-requester": b"\0" + post(4, qp=7) + post(5, qp=7) + post(2, qp=7) + run + made(0xAD, qp=7) + made(0xAE, qp=7) +
                         made(0xAF, qp=7, length=88) + made(0xB2, qp=7) + made(0xB1, 1, qp=7, where=0x1F) + run,
        "xrc-backwards": b"\0" + made(0xAA, qp=7) + made(0xB1, qp=6) + made(0x0A, qp=6) + made(0xAA) + run,
    }


def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def frame():
    me, other = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")
    v4 = [bytes([10, 0, 0, i]) for i in (2, 1)]
    v6 = [bytes.fromhex("fd") + bytes(14) + bytes([i]) for i in (2, 1)]

    def arp(operation, target):
        return b"\xff" * 6 + other + struct.pack(">HHHBBH", 0x0806, 1, 0x0800, 6, 4, operation) + other + v4[1] + bytes(6) + target

    def discovery(kind, source, target, option):
        body = struct.pack(">BBHI", kind, 0, 0, 0) + target + bytes([option, 1]) + other
        pseudo = source + target + struct.pack(">II", len(body), 58)
        body = body[:2] + struct.pack(">H", checksum(pseudo + body)) + body[4:]
        return me + other + b"\x86\xdd" + struct.pack(">IHBB", 6 << 28, len(body), 58, 255) + source + target + body

    udp_body = bth(0x04) + bytes(4)
    udp = struct.pack(">HHHH", 0xC0DE, 4791, 8 + len(udp_body), 0) + udp_body
    ip = struct.pack(">BBHHHBBH", 0x45, 2, 20 + len(udp), 7, 0x4000, 64, 17, 0) + v4[1] + v4[0]
    ip = ip[:10] + struct.pack(">H", checksum(ip)) + ip[12:]
    return {
        "arp-question": arp(1, v4[0]),
        "arp-other": arp(1, v4[1]),
        "arp-answer": arp(2, v4[0]),
        "solicitation": discovery(135, v6[1], v6[0], 1),
        "duplicate": discovery(135, bytes(16), v6[0], 14),
        "advertisement": discovery(136, v6[1], v6[0], 2),
        "ipv4": me + other + b"\x08\0" + ip + udp,
        "ipv4-padded": me + other + b"\x08\0" + ip + udp + bytes(6),
        "ipv6": me + other + b"\x86\xdd" + struct.pack(">IHBB", 6 << 28, len(udp), 17, 64) + v6[1] + v6[0] + udp,
        "short": me + other,
    }


def mad(attribute, fields=b"", version=(1, 7, 2, 3)):
    head = struct.pack(">4BHHQHHI", *version, 0, 0, 0xA1A2A3A4A5A6A7A8, attribute, 0, 0)
    return (head + fields).ljust(256, b"\0")


def ip_header(ip=4, port=0x5152, version=0):
    ends = b"".join(bytes(12) + bytes([10, 0, 0, i]) if ip == 4 else b"\xfd" + bytes(14) + bytes([i]) for i in (1, 2))
    return struct.pack(">BBH", version, ip << 4, port) + ends


def cm_request(service=0x1061D2F, private=ip_header(), qpn=0x313233):
    path = struct.pack(">HH", 0xFFFF, 0xFFFF) + bytes(10) + b"\xff\xff\x0a\0\0\1" + bytes(10) + b"\xff\xff\x0a\0\0\2"
    path += struct.pack(">IBBBB", 0, 0, 64, 0, 18 << 3)
    body = struct.pack(">IIQQII", 7, 0, service, 0x1112, 0, 0) + struct.pack(">I", qpn << 8 | 16)
    body += struct.pack(">III", 16, 20 << 3, 0x414243 << 8 | 19 << 3 | 7) + struct.pack(">HBB", 0xFFFF, 5 << 4 | 7, 15 << 4)
    return mad(0x10, body + path + bytes(44) + private)


def cm_message():
    ids = struct.pack(">II", 9, 7)
    seeds = {name: mad(number, ids) for number, name in enumerate(
        ("mra", "rej", "rep", "rtu", "dreq", "drep", "sidr-req", "sidr-rep", "lap", "apr"), 0x11)}
    return seeds | {
        "req": cm_request(),
        "short": mad(0x14, ids)[:255],
        "class": mad(0x14, ids, (1, 3, 2, 3)),
        "version": mad(0x14, ids, (1, 7, 1, 3)),
        "method": mad(0x14, ids, (1, 7, 2, 1)),
        "unknown": mad(0x1B, ids),
        "ip4": ip_header(),
        "ip6": ip_header(6),
        "ip5": ip_header(5),
        "ip-version": ip_header(version=1),
    }


def cm_commands():
    # Frames of cm_commands.cpp. Pointers and ids may also lie in the bytes: ids count from 0.
    def command(number, body, pointer=2, channel=0):
        body += bytes(-len(body) % 4)
        return bytes([number, channel << 7 | len(body) // 4, pointer]) + body

    def parameters(qpn):
        return struct.pack("<II256x8B", qpn, 0, 0, 0, 4, 2, 0, 7, 7, 1)

    def sockaddr(port, host=b"\x7f\0\0\1"):
        return struct.pack("<H", 2) + struct.pack(">H", port) + host + bytes(8)

    def create(space=0x106, kind=2):
        return command(0, struct.pack("<QQHB5x", 0x1000, 0, space, kind), 1)

    def bind_ip(number, port, host=b"\x7f\0\0\1"):
        return command(2, struct.pack("<Q", 0) + sockaddr(port, host).ljust(28, b"\0") + struct.pack("<I", number))

    def resolve_ip(number, port):
        return command(3, bytes(28) + sockaddr(port).ljust(28, b"\0") + struct.pack("<II", number, 2000))

    def bind(number, port):
        return command(20, struct.pack("<IHH", number, 16, 0) + sockaddr(port).ljust(128, b"\0"))

    def listen(number, backlog=4):
        return command(7, struct.pack("<II", number, backlog))

    def route(number):
        return command(4, struct.pack("<II", number, 2000))

    def event(channel=0):
        return command(12, bytes(8), 0, channel)

    def query(number, option):
        return command(19, struct.pack("<QII", 0, number, option), 0)

    def attributes(number, state):
        return command(11, struct.pack("<QII", 0, number, state), 0)

    def connect(number):
        return command(6, parameters(0x111) + struct.pack("<IIII", number, 0, 0, 0))

    resolved = create() + resolve_ip(0, 7471) + event() + route(0) + event()
    listening = create() + bind(0, 7471) + listen(0)
    return {
        "create": create() + create(0x111, 4) + create(2, 4) + create(0x13F, 9) + create(7),
        "listen": listening + query(0, 0) + query(0, 2),
        "listen-any": create() + bind_ip(0, 7471, bytes(4)) + listen(0) + listen(0),
        "resolve": resolved + query(0, 0) + query(0, 1) + query(0, 2) + attributes(0, 1) + attributes(0, 2),
        "route": resolved + command(5, struct.pack("<QII", 0, 0, 0), 0),
        "connect": resolved + connect(0) + attributes(0, 1) + command(10, bytes(4)),
        "both": listening + create() + resolve_ip(1, 7471) + event() + route(1) + event() + connect(1) + event() * 4,
        "migrate": create() + resolve_ip(0, 1) + command(18, struct.pack("<QII", 0, 0, 3), 0, 1) + event(1) + event(),
        "destroy": create() + resolve_ip(0, 1) + command(1, struct.pack("<QII", 0, 0, 0), 0),
        "notify": create() + command(15, struct.pack("<II", 0, 4)),
        "disconnect": resolved + command(10, struct.pack("<I", 0)),
        "leave": command(17, bytes(16), 0),
        "join": create(0x111, 4) + command(22, struct.pack("<QQIHH", 0, 1, 0, 16, 0) + sockaddr(0, b"\xe0\0\0\1").ljust(128, b"\0"), 0),
        "join-ip": create(0x111, 4) + command(16, bytes(16) + sockaddr(0, b"\xe0\0\0\1").ljust(28, b"\0") + struct.pack("<I", 0), 0),
        "option": create() + command(14, struct.pack("<QIIII", 0, 0, 0, 0, 1), 0),
        "reject": create() + command(9, struct.pack("<IBBH", 0, 3, 28, 0) + b"no!".ljust(256, b"\0")),
        "accept": create() + command(8, struct.pack("<Q", 7) + parameters(2) + bytes(16)),
        "unknown": command(13, b"") + command(23, b"") + command(255, bytes(8)),
    }


def program():
    """Program files: an ELF header, descriptions of segments, the loader's name, notes."""

    def head(segments, width=64, order="<", kind=3, machine=62):
        ident = b"\x7fELF" + bytes([2 if width == 64 else 1, 1 if order == "<" else 2, 1]) + bytes(9)
        if width == 64:
            return ident + struct.pack(order + "HHIQQQIHHHHHH", kind, machine, 1, 0, 64, 0, 0, 64, 56, segments, 64, 0, 0)
        return ident + struct.pack(order + "HHIIIIIHHHHHH", kind, machine, 1, 0, 52, 0, 0, 52, 32, segments, 40, 0, 0)

    def segment(kind, offset, size, width=64, order="<"):
        if width == 64:
            return struct.pack(order + "IIQQQQQQ", kind, 4, offset, 0, 0, size, size, 8)
        return struct.pack(order + "IIIIIIII", kind, offset, 0, 0, size, size, 4, 4)

    loader = b"/lib64/ld-linux-x86-64.so.2\0"
    go = struct.pack("<III", 4, 4, 3) + b"GNU\0abcd" + struct.pack("<III", 4, 8, 4) + b"Go\0\0build-id"
    return {
        "dynamic": head(1) + segment(3, 120, len(loader)) + loader,
        "static": head(1) + segment(1, 0, 4096),
        "none": head(0),
        "go": head(2) + segment(3, 176, len(loader)) + segment(4, 176 + len(loader), len(go)) + loader + go,
        "narrow": head(1, 32) + segment(3, 84, len(loader), 32) + loader,
        "big-endian": head(1, 32, ">", 2, 20) + segment(3, 84, len(loader), 32, ">") + loader,
        "endless-name": head(1) + segment(3, 120, 8) + b"/lib64/l",
        "past-the-end": head(1) + segment(3, 1 << 63, 27),
        "script": "#! /usr/bin/env -S python3 -u\nprint()\n",
        "script-bare": "#!",
        "text": "echo\n",
    }


# A program's calls of RDMA_VERBS_IOCTL; what they point to lies from 0x11000 on.
def uverbs():
    def put(where, what):
        return b"\1" + struct.pack("<HH", len(what) + 2, where - 0x10000) + what

    def call(obj, method, *attributes):
        body = b"".join(struct.pack("<HHHHQ", i, n, 1, 0, data) for i, n, data in attributes)
        head = struct.pack("<HHHHQII", 24 + len(body), obj, method, len(attributes), 0, 1, 0)
        return b"\0" + struct.pack("<H", len(head + body)) + head + body

    def command(number, core, room, driver=b"", driver_room=0):
        def at(what, where):  # what fits into the attribute lies there
            return struct.unpack("<Q", what.ljust(8, b"\0"))[0] if len(what) <= 8 else where

        attributes = [(0, len(core), at(core, 0x11000)), (1, room, 0x12000), (2, 8, number)]
        if driver:
            attributes.append((0x1000, len(driver), at(driver, 0x13000)))
        if driver_room:
            attributes.append((0x1001, driver_room, 0x14000))
        return put(0x11000, core) + (put(0x13000, driver) if driver else b"") + call(0, 0, *attributes)

    pd = command(3, struct.pack("<Q", 0), 4, driver_room=4)  # handle 1
    mr = command(9, struct.pack("<QQQQII", 0, 0x18000, 0x1000, 0x18000, 1, 0xF), 12)
    rereg = command(11, struct.pack("<QIIQQQII", 0, 2, 5, 0x19000, 0x800, 0x19000, 1, 0xF), 8)
    channel = command(17, struct.pack("<Q", 0), 4)
    cq_driver = struct.pack("<QQIBBHHHI", 0x15000, 0x16000, 64, 0, 0, 0, 0, 0, 0)
    cq = put(0x13000, cq_driver) + call(3, 0, (0, 0, 0), (1, 4, 15), (2, 8, 0x1234), (4, 4, 0), (6, 4, 0x12000),
                                        (0x1000, len(cq_driver), 0x13000), (0x1001, 8, 0x14000))

    def qp(kind, handle):
        driver = struct.pack("<QQIIIIIIQIBBH", 0x17000, 0x16040, 16, 8, 6, 0, 1, 0, 0, 0, 0, 0, 0)
        cap = struct.pack("<IIIII", 16, 8, 1, 1, 0)
        return put(0x13000, driver) + put(0x11000, cap) + call(
            4, 0, (0, 0, 0), (2, 0, 1), (4, 0, handle), (5, 0, handle), (7, 8, 0x4321), (8, 20, 0x11000), (9, 8, kind),
            (13, 20, 0x12000), (14, 4, 0x12100), (0x1000, len(driver), 0x13000), (0x1001, 40, 0x14000))

    def modify(handle, mask, state):
        dest = bytes(10) + b"\xff\xff\x0a\0\0\2" + struct.pack("<IHHBBBBBBBB", 0, 0, 0, 0, 64, 0, 0, 0, 0, 1, 1)
        body = dest + dest + struct.pack("<IIIIIIIHH", handle, mask, 0x1111, 1, 1, 0x10011, 0xF, 0, 0)
        body += struct.pack("<BBBBBBBBBBBBBBH", state, 0, 3, 0, 0, 1, 1, 12, 1, 14, 7, 7, 1, 0, 0)
        return command(26, body, 0)

    def ex_modify(handle):  # to INIT, with what only the newer command has
        return command(0x8000001A, bytes(64) + struct.pack("<IIIIIIIHH", handle, 0x39, 0, 0, 0, 0, 0xF, 0, 0) +
                       struct.pack("<BBBBBBBBBBBBBBH", 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + bytes(8), 8)

    connected = pd + cq + qp(2, 2) + modify(3, 0x39, 1) + modify(3, 0x121181 | 0x8000, 2) + modify(3, 0x12E01, 3)
    # Handles: domain 1, queue 2, and then what is made next.
    shared = put(0x13000, struct.pack("<QQIIII", 0x15000, 0x16000, 0, 0, 0, 0)) + call(
        5, 0, (0, 0, 0), (1, 0, 1), (4, 8, 0x77), (5, 4, 15), (6, 4, 2), (7, 4, 0), (9, 8, 0), (11, 4, 0x12000),
        (12, 4, 0x12004), (13, 4, 0x12008), (0x1000, 32, 0x13000), (0x1001, 8, 0x14000))
    srq_use = command(33, struct.pack("<IIII", 2, 2, 0, 4), 0) + command(34, struct.pack("<QII", 0, 2, 0), 16)
    xrcd = command(37, struct.pack("<QII", 0, 0xFFFFFFFF, 0o100), 4)  # of no file
    xrc_target = put(0x13000, bytes(64)) + put(0x11000, bytes(20)) + call(
        4, 0, (0, 0, 0), (1, 0, 1), (7, 8, 0x4321), (8, 20, 0x11000), (9, 8, 10), (13, 20, 0x12000), (14, 4, 0x12100),
        (0x1000, 64, 0x13000), (0x1001, 40, 0x14000))
    open_target = command(40, struct.pack("<QQIIB7x", 0, 0x77, 1, 0x10001, 10), 32)  # as the first is called
    window = command(14, struct.pack("<QIB3x", 0, 1, 1), 8, struct.pack("<IBBH", 0, 0, 0, 0), 8)
    resize = command(19, struct.pack("<QII", 0, 1, 31), 4, struct.pack("<QHHI", 0x18000, 64, 0, 0))
    on_demand = command(9, struct.pack("<QQQQII", 0, 0x18000, 0x1000, 0x18000, 1, 0x4F), 12)
    advise = put(0x11000, struct.pack("<QII", 0x18000, 64, 0x1001)) + call(
        7, 2, (0, 0, 1), (1, 8, 1), (2, 4, 1), (3, 16, 0x11000))
    dmabuf = call(7, 4, (0, 0, 0), (1, 0, 1), (2, 8, 0), (3, 8, 4096), (4, 8, 0), (5, 0, 2), (6, 4, 1), (7, 4, 0x12000),
                  (8, 4, 0x12004))
    ah = command(5, struct.pack("<QQII", 0, 0, 1, 0) + bytes(10) + b"\xff\xff\x0a\0\0\2" +
                 struct.pack("<IBBBBHBBBBBB", 0, 0, 64, 0, 0, 0, 0, 0, 0, 1, 1, 0), 4, driver_room=16)
    return {
        "query-device": command(1, struct.pack("<Q", 0), 176),
        "query-port": call(0, 2, (0, 8, 1), (1, 48, 0x12000)),
        "query-gid": call(0, 6, (0, 8, 1), (1, 8, 0), (2, 4, 0), (3, 32, 0x12000)),
        "query-gids": call(0, 5, (0, 8, 32), (1, 4, 0), (2, 64, 0x12000), (3, 8, 0x13000)),
        "async": call(16, 0, (0, 0, 0)),
        "memory": pd + mr + call(7, 3, (0, 0, 2), (1, 4, 0x12000), (2, 4, 0x12010), (3, 8, 0x12020)) + call(7, 1, (0, 0, 2)),
        "rereg": pd + mr + rereg,
        "dmabuf": pd + dmabuf,
        "address": pd + ah + call(6, 0, (0, 0, 2)) + call(1, 0, (0, 0, 1)),
        "channel": channel,
        "cq": cq + call(3, 1, (0, 0, 1), (1, 8, 0x12000)),
        "qp-rc": connected + command(25, struct.pack("<QII", 0, 3, 0xFFFF), 144) + call(4, 1, (0, 0, 3), (1, 4, 0x12000)),
        "qp-ud": pd + cq + qp(4, 2) + modify(3, 0x71, 1),
        "ex-query-device": command(0x80000001, struct.pack("<II", 0, 0), 304),
        "srq": pd + shared + srq_use + call(5, 1, (0, 0, 2), (1, 4, 0x12000)),
        "xrc": xrcd + xrc_target + open_target + call(4, 1, (0, 0, 3), (1, 4, 0x12000)) +
               call(4, 1, (0, 0, 2), (1, 4, 0x12000)) + call(10, 0, (0, 0, 1)),
        "window": pd + window + call(8, 0, (0, 0, 2)),
        "cq-resize": cq + resize,
        "qp-ex-modify": pd + cq + qp(2, 2) + ex_modify(3),
        "on-demand": pd + on_demand + advise,
        "qp-error": connected + modify(3, 1, 6) + modify(3, 1, 0),
    }


# Command mailboxes in the device's format: fields by bit and width, as in strait/wire/prm.hpp.
def devx():
    NEWEST = 0xFFFFFE

    def box(opcode, *fields, size=272):
        bits = opcode << (size * 8 - 16)
        for bit, width, value in fields:
            bits |= (value & (1 << width) - 1) << (size * 8 - bit - width)
        return bits.to_bytes(size, "big")

    def step(what, body, handle=0, room=34):
        return bytes([what, handle, room]) + struct.pack("<H", len(body)) + body

    pd = step(0, box(0x800, size=16), room=2)  # handle 3
    cq_fields = [(0xE3, 5, 4), (0xE8, 24, 8192), (0xA0, 32, 2), (0x240, 64, 0x4000), (0x2C0, 32, 2), (0x280, 64, 0)]
    cq = step(0, box(0x400, *cq_fields))  # handle 4
    collapsed = step(0, box(0x400, *cq_fields, (0x8B, 1, 1), (0x8E, 1, 1)))
    qp_fields = [(0xE8, 24, NEWEST), (0x4A8, 24, NEWEST), (0x5A8, 24, NEWEST), (0x128, 24, 8192), (0x111, 4, 4),
                 (0x7E0, 32, 2), (0x5C0, 64, 0x4040), (0x840, 32, 2), (0x800, 64, 0x1000)]
    qp = step(0, box(0x500, *qp_fields, (0x109, 4, 3)))  # handle 5
    rmp_fields = [(0x108, 4, 1), (0x2C8, 24, NEWEST), (0x38C, 4, 5), (0x39B, 5, 4), (0x3C0, 32, 2), (0x300, 64, 0x4080),
                  (0x3E0, 32, 2)]
    rmp = step(0, box(0x90C, *rmp_fields))
    cyclic = step(0, box(0x90C, *rmp_fields, (0x280, 4, 1)))
    mkey_fields = [(0x91, 1, 1), (0x92, 1, 1), (0x93, 1, 1), (0x94, 1, 1), (0xA0, 24, 0xFFFFFF), (0xB8, 8, 7),
                   (0xE8, 24, NEWEST)]
    mkey = step(0, box(0x200, *mkey_fields, (0x96, 2, 1), (0x100, 64, 0x70000), (0x140, 64, 4096), (0x320, 32, 2)))
    alias = step(0, box(0x200, *mkey_fields, (0x96, 2, 3), (0x100, 64, 0x1000), (0x140, 64, 4096), (0x25B, 5, 12),
                        (0x300, 32, 1), (0x8A0, 32, NEWEST << 8 | 7), (0x8C0, 64, 0x70000), size=288))

    empty = step(0, box(0x200, (0x81, 1, 1), (0x90, 1, 1), (0x95, 1, 1), (0x96, 2, 2), (0xA0, 24, 0xFFFFFF), (0xE7, 1, 1),
                        (0xE8, 24, NEWEST), (0x220, 32, 4)))
    parts = step(0, box(0x200, *mkey_fields, (0x96, 2, 2), (0x140, 64, 80), (0x300, 32, 2), (0x880, 32, 64),
                        (0x8A0, 32, NEWEST << 8 | 7), (0x8C0, 64, 0x70000), (0x900, 32, 16),
                        (0x920, 32, NEWEST << 8 | 7), (0x940, 64, 0x70100), size=304))

    def change(opcode, *fields):
        return step(1, box(opcode, (0x48, 24, NEWEST), *fields), handle=5)

    path = [(0x200, 64, 0), (0x240, 64, 0xFFFF0A000002), (0x1D8, 8, 64), (0x2A8, 8, 1)]
    connected = pd + cq + qp + change(0x502, (0x2A8, 8, 1), (0x551, 1, 1))
    connected += change(0x503, *path, (0x100, 3, 3), (0x168, 24, 0x11), (0x548, 3, 2), (0x563, 5, 12), (0x80, 32, 0xE),
                        (0x550, 3, 7))
    connected += change(0x504, (0x1C0, 5, 14), (0x44D, 3, 7), (0x450, 3, 7), (0x448, 3, 2))
    query = step(2, box(0x50B, (0x48, 24, NEWEST), size=16), handle=5)
    return {
        "caps": step(4, box(0x100, (0x30, 16, 1), size=16)) + step(4, box(0x100, (0x30, 16, 7), size=16)),
        "lag": step(4, box(0x842, size=16), room=2),
        "unknown": step(4, box(0x7FF, size=16), room=2) + step(0, box(0x910, size=16), room=2),
        "domain": pd + step(3, b"", handle=3),
        "cq": cq + collapsed + step(3, b"", handle=3),
        "qp": connected + query + change(0x507) + change(0x50A) + step(3, b"", handle=5),
        "qp-step-twice": connected + change(0x503),
        "shared": pd + cq + rmp + step(0, box(0x500, *qp_fields, (0x625, 3, 1), (0x628, 24, NEWEST))),
        "shared-cyclic": pd + cyclic,
        "key": pd + mkey + alias + step(3, b"", handle=4) + step(3, b"", handle=5),
        "key-empty": pd + empty + step(3, b"", handle=4),
        "key-parts": pd + mkey + parts + step(3, b"", handle=5) + step(3, b"", handle=4),
        "short": step(0, box(0x500, size=64)) + step(0, b"\x04\0\0\0") + step(0, box(0x400, *cq_fields), room=1),
        "umem": step(5, struct.pack("<HHB", 0x9000, 0x1000, 0)) + step(0, box(0x400, *cq_fields[:-2], (0x2C0, 32, 3))),
        "umem-beyond": step(0, box(0x400, *cq_fields[:-1], (0x280, 64, 0x7FF0))),
    }


def grant():
    def note(how, what, number=0, region=0):
        fields = struct.pack("<HQ", what, number) + struct.pack("<QQQQII", region, 1, 4096, 4096, 3, 9)
        return bytes([how]) + fields.ljust(64, b"\0")

    hello = note(1 | 2 | 8, 1)
    return {
        "asks": hello + note(9, 3, 1, 5) + note(9, 3, 2, 3) + note(9, 3, 3, 2),
        "asks-first": note(9, 3, 1, 5),
        "files": note(1 | 6, 1),
        "garbage": b"\0" + b"x" * 64,
        "lets-go": hello + note(1, 7),
        "no-file": note(1, 1),
        "silent": b"",
        "twice": hello + hello,
    }


for seeds in (endpoint, values, options, record, ticket, rendezvous, wqe, packet, live_packet, frame, cm_message,
              cm_commands, program, uverbs, devx, grant, cassini_ring, cassini_abi, cassini_socket, doorbell_store):
    write(seeds.__name__, seeds())
