# SPDX-License-Identifier: Apache-2.0
# Seeds of the targets that speak to a software Cassini, for make_corpus.py.
import struct


def cxi_bits(size, *fields):
    """Bytes of `size` with (first bit, bits, value) set."""
    word = 0
    for first, bits, value in fields:
        word |= (value & ((1 << bits) - 1)) << first
    return word.to_bytes(size, "little")


def cxi_step(kind, content):
    return bytes([kind]) + struct.pack("<H", len(content)) + content


def cassini_ring():
    IDC, DMA, CT, TARGET = 0, 1, 2, 3
    # The other program came first: counters 1 to 3, event queue 1 and portals 1 and 2 are its own.
    own, other = 0x100 << 12 | 6, 0x100 << 12 | 5  # network id 0x100, PIDs 6 and 5

    def address(offset):
        return 0xC0FFEE << 24 | offset

    def head(kind, size, op):
        return (0, 8, kind | {32: 0, 64: 1, 128: 2, 256: 3}[size] << 2 | op << 4)

    def dma(op, size=64, dfa=own, index=1, length=64, local=0x1000, remote=0, ct=4, eq=2, flags=0b10000, more=()):
        return cxi_bits(size, head(DMA, size, op), (8, 5, index), (19, 11, flags), (32, 32, dfa), (64, 56, remote),
                        (128, 64, address(local)), (192, 32, length), (224, 11, ct), (240, 11, eq), *more)

    def amo(op, what, kind, **words):
        return dma(op, 128, length=8, more=((576, 4, what), (584, 4, kind), (512, 64, address(0x2000)), (640, 64, 1)), **words)

    def ct(op, counter=0, trigger=0, eq=0, success=0, failure=0, threshold=0, marks=1, embedded=b""):
        size = 128 if embedded else 64
        words = cxi_bits(size, head(CT, size, op), (16, 11, counter), (32, 11, trigger), (48, 11, eq), (64, 48, success),
                         (112, 7, failure), (126, 2, marks), (128, 48, threshold))
        return words[:24] + (embedded + bytes(104))[:104] if embedded else words

    def target(op, pte=3, entries=0, flags=0x6000, buffer=7, start=0x1000, length=256, match=0, ignore=0, least=0):
        return cxi_bits(64, head(TARGET, 64, op), (8, 2, entries), (16, 11, pte), (32, 15, flags), (48, 11, 6),
                        (64, 16, buffer), (128, 64, address(start)), (192, 56, length), (256, 24, least),
                        (288, 32, 0xFFFFFFFF), (320, 64, match), (384, 64, ignore))

    def idc(op, size, length, *fields):
        return cxi_bits(size, head(IDC, size, op), (8, 8, length), (32, 32, own), *fields)

    def transmit(*commands):
        return cxi_step(0, b"".join(commands))

    def targets(*commands):
        return cxi_step(1, b"".join(commands))

    def counters(*commands):
        return cxi_step(2, b"".join(commands))

    cstate = cxi_bits(32, head(IDC, 32, 10), (8, 8, 32), (19, 11, 0b10000), (64, 5, 1), (224, 11, 4), (240, 11, 2))
    overflow = target(8, entries=1, flags=0x7000, length=4096, ignore=2**64 - 1, least=64)
    wait = targets(overflow) + transmit(dma(1, index=0, more=((320, 64, 9),)), dma(1, index=0, more=((320, 64, 8),)))
    rendezvous = dma(3, index=0, length=3000, flags=0b10000 | 1 << 10, more=((256, 20, 64), (280, 8, 5), (288, 32, 6 << 23 | 0x100), (320, 64, 9)))
    bell = struct.pack("<BHQ", 0, 0, 5)
    return {
        "put": transmit(dma(1)),
        "put-other": transmit(dma(1, dfa=other, index=0)),
        "put-beyond": transmit(dma(1, dfa=other, index=0, remote=4090), dma(1, length=0xFFFFFFFF), dma(1, local=0x8000)),
        "put-nobody": transmit(dma(1, dfa=0x101 << 12 | 5), dma(1, dfa=0x999 << 12), dma(1, dfa=0xFF800007)),
        "get": transmit(dma(2, flags=0b1000)),
        "get-other": transmit(dma(2, dfa=other, index=0, flags=0b1000)),
        "nomatch": transmit(dma(8, 32) + dma(9, 32)),
        "atomics": transmit(amo(4, 2, 7), amo(5, 11, 5), amo(5, 12, 12), amo(4, 0, 9)),
        "immediate": transmit(cstate + bytes(32), idc(1, 64, 48, (128, 64, 0x1122334455667788)),
                              idc(4, 32, 32, (128, 4, 2), (136, 4, 7), (192, 64, 1)) + bytes(32),
                              idc(5, 64, 64, (128, 64, address(0x3000)), (192, 4, 10), (200, 4, 7)), idc(7, 64, 60)),
        "state-fence-profile": transmit(cxi_bits(64, head(TARGET, 64, 1)), bytes(64), cxi_bits(64, head(TARGET, 64, 2), (32, 4, 0)), cxi_bits(64, head(TARGET, 64, 0))),
        "count": counters(ct(1, 4, success=5), ct(2, 4), ct(3, 5, success=1), ct(4, 4)),
        "trigger": counters(ct(8, trigger=4, threshold=5, eq=2), ct(7, 5, 4, success=1, threshold=5), ct(6, 6, 5, success=9, threshold=1), ct(3, 4, success=5)),
        "trigger-put": counters(ct(5, trigger=4, threshold=5, embedded=dma(1)), ct(5, trigger=4, threshold=1, embedded=amo(4, 2, 7)[:96])) + cxi_step(4, bell),
        "chain": counters(*(ct(7, 4, 4, success=1, threshold=n) for n in range(1, 30)), ct(3, 4, success=1)),
        "doorbells": cxi_step(4, bell) + cxi_step(4, struct.pack("<BHQ", 0, 64, 2**64 - 1)) + cxi_step(4, struct.pack("<BHQ", 0, 128, 0)) + cxi_step(4, struct.pack("<BHQ", 1, 192, 1)),
        "append": targets(target(8), target(9, entries=3, ignore=5), target(10, entries=3), target(11, buffer=7), target(11, buffer=9)),
        "unexpected": wait + targets(target(9, entries=3, flags=0x400, match=9), target(8, flags=0x6400, match=9), target(10, entries=3, match=8)),
        "unexpected-many": targets(overflow) + transmit(*(dma(1, index=0, length=8) for _ in range(40))) + targets(target(10, entries=3, ignore=2**64 - 1)),
        "rendezvous": targets(target(8, length=4096, match=9)) + transmit(rendezvous),
        "rendezvous-late": targets(overflow) + transmit(rendezvous) + targets(target(8, length=4096, match=9, flags=0x6400)),
        "states": targets(*(cxi_bits(64, head(TARGET, 64, 12), (8, 3, n), (16, 11, 3), (128, 24, 0xFFFFFF)) for n in (1, 3, 2, 0, 4, 7))),
        "managed": targets(cxi_bits(64, head(TARGET, 64, 12), (8, 3, 3), (16, 11, 3), (128, 24, 0xFFFFFF)), target(8, entries=2, flags=0x7000, length=4096, least=256)) + transmit(dma(1, index=0)),
        "others-portal": targets(target(8, pte=1)),
        "others-counter": counters(ct(3, 1, success=1)),
        "bad-header": transmit(b"\xf7" * 64) + transmit(dma(1)),
        "bad-size": transmit(dma(1)[:1].replace(b"\x15", b"\x1d") + dma(1)[1:]),
        "pointers": cxi_step(3, struct.pack("<BQ", 0, 63)) + cxi_step(3, struct.pack("<BQ", 0, 3)) + cxi_step(3, struct.pack("<BQ", 1, 64)) + cxi_step(3, struct.pack("<BQ", 2, 2**64 - 1)),
        "ring-bytes": cxi_step(6, struct.pack("<BH", 0, 256) + dma(1) * 8) + cxi_step(3, struct.pack("<BQ", 0, 12)),
        "windows": cxi_step(6, struct.pack("<BH", 0, 256) + dma(1)) + cxi_step(7, struct.pack("<BH", 0, 1024 + 256) + dma(1)),
        "event-state": cxi_step(5, struct.pack("<Q", 100)) + transmit(*(dma(1) for _ in range(30))) + cxi_step(5, struct.pack("<Q", 2**64 - 1)),
        "event-flood": (transmit(*(dma(1, flags=0b10000) for _ in range(58))) * 6),
        "copied": cxi_step(9, b"\1") + transmit(dma(1), dma(2, flags=0b1000), amo(5, 2, 7)),
        "memory": cxi_step(8, struct.pack("<H", 0x1000) + b"x" * 64) + transmit(dma(1)),
    }


def cassini_abi():
    base = 0x100000

    def call(op, form, *fields):
        return cxi_step(0, struct.pack("<I" + form, op, *fields))

    def answered(op, form, *fields, at=base):
        return cxi_step(0, struct.pack("<IIQ" + form, op, 0, at, *fields))

    def mapped(at):
        return cxi_step(1, struct.pack("<QQ", at, 0))

    lni = answered(1, "II", 1, 0)
    cp = answered(83, "IIIIII", 1, 1, 3, 0, 0, 0)
    domain = answered(4, "IIII", 1, 1, 511, 0)
    hints = bytes(40)
    md = cxi_step(0, struct.pack("<IIQIIQQII", 11, 0, base, 1, 0, base + 0x2000, 0x2000, 1 | 4 | 8, 0) + hints)
    dmabuf = cxi_step(0, struct.pack("<IIQIIQQII", 11, 0, base, 1, 0, base, 0x2000, 0x200 | 4 | 8, 0) + struct.pack("<iiiB3xi4xQB7x", 0, 0, 0, 0, 3, 0, 1))
    eq = answered(13, "IIIIQQQIIIIII", 1, 1, 0, 0, base + 0x2000, 0x1000, 0, 0, 0, 0, 0, 0, 0)
    waits = answered(23, "II", 1, 0)
    eq_waits = answered(13, "IIIIQQQIIIIII", 1, 1, 1, 1, base + 0x2000, 0x1000, 0, 50, 10, 2, 0, 0, 4)
    tx = answered(8, "II6I", 1, 1, 64, 0, 0, 2, 0, 0)
    tgt = answered(8, "II6I", 1, 0, 64, 1, 0, 0, 0, 0)
    triggered = answered(8, "II6I", 1, 0, 64, 0, 0, 2 | 8, 0, 0)
    brought = answered(86, "II6IQB3xiQ", 1, 0, 64, 0, 0, 2, 0, 0, base + 0x5000, 1, -1, 0)
    device = answered(86, "II6IQB3xiQ", 1, 0, 64, 0, 0, 2, 0, 0, 0x40000000, 0, -1, 0)
    ct = answered(25, "IIQ", 1, 0, base + 0x6000)
    pte = answered(17, "IIQ", 1, 1, 0x80)
    pte_map = answered(19, "IIIB3x", 1, 1, 3, 0)
    service = struct.pack("<BB4H5Bx", 0x1F, 1, 10, 0, 0, 0, 1, 0, 1, 1, 0) + struct.pack("<IIII", 1000, 1, 0, 0)
    service += struct.pack("<16H", *([8, 4] * 8)) + struct.pack("<I", 0)
    made = cxi_step(0, struct.pack("<IIQ", 28, 0, base) + service + bytes(4))
    root, user = cxi_step(4, struct.pack("<Q", 1)), cxi_step(4, struct.pack("<Q", 0))
    drive = cxi_step(6, b"")
    everything = lni + cp + domain + md + eq + tx + tgt + triggered + ct + pte + pte_map
    return {
        "everything": everything + drive,
        "back": everything + answered(20, "II", 0, 0) + answered(18, "II", 1, 0) + call(9, "I", 0) + call(9, "I", 1024)
        + call(9, "I", 1) + call(26, "I", 1) + call(14, "I", 1) + call(12, "I", 1) + call(5, "I", 1) + call(7, "I", 0) + call(2, "I", 1),
        "busy": everything + call(2, "I", 1) + call(14, "I", 1) + call(12, "I", 1) + call(5, "I", 1),
        "profile-first": lni + cp + tx + triggered + ct + call(7, "I", 0) + drive,
        "twice": lni + lni + domain + domain + cp + cp,
        "cookies": lni + ct + mapped(8) + mapped(8) + call(26, "I", 1) + cxi_step(2, struct.pack("<Q", 4096)) + call(26, "I", 1),
        "ring-cookies": lni + cp + tx + mapped(8) + mapped(24) + drive + call(9, "I", 0),
        "resize": lni + md + eq + call(15, "IQQII", 1, base + 0x3000, 0x1000, 1, 0) + drive + call(16, "I", 1) + call(14, "I", 1),
        "waits": lni + md + waits + eq_waits + answered(24, "II", 1, 0) + call(14, "I", 1) + answered(24, "II", 1, 0),
        "rings": lni + cp + brought + device + drive,
        "dmabuf": lni + dmabuf + cxi_step(5, struct.pack("<I", 1)) + call(12, "I", 1),
        "write-back": lni + ct + call(38, "IQ", 1, base + 0x7000) + call(38, "IQ", 1, 0) + call(38, "IQ", 1, 8),
        "reserve": lni + answered(3, "IIII", 1, 1, 511, 4) + domain + call(5, "I", 1),
        "portal": lni + md + eq + pte + answered(22, "II", 1, 0) + answered(48, "II", 1, 0) + call(21, "III", 1, 0, 0),
        "fc": lni + md + eq + answered(37, "Ii", 1, 10) + answered(37, "Ii", 1, -20),
        "info": answered(52, "") + answered(34, "") + call(43, "") + answered(30, ""),
        "services": made + answered(45, "II", 2, 0) + answered(27, "IIQ", 4, 0, base + 0x1000) + answered(50, "II", 2, 0)
        + answered(1, "II", 2, 0) + call(2, "I", 1) + answered(80, "IB3x", 2, 0) + call(29, "I", 2),
        "service-left": made + answered(53, "II", 2, 4) + answered(81, "IIII", 2, 16, 31, 0) + call(84, "II", 2, 7),
        "user": user + made + lni + root + md,
        "bad": call(0, "I", 0) + call(200, "I", 0) + answered(1, "I", 1) + answered(1, "II", 99, 0) + answered(1, "II", 1, 0, at=8),
        "nowhere": lni + answered(4, "IIII", 1, 1, 511, 0, at=0xFFFFFFFFFFFFFFF8) + answered(25, "IIQ", 1, 0, 0x7FFFFFFFF000),
        "long-map": lni + cxi_step(0, struct.pack("<IIQIIQQII", 11, 0, base, 1, 0, base, 2**63, 0x10 | 4 | 8, 0) + hints),
    }


def cassini_socket():
    SOCKET, FIXED, LOOSE, BOTH = 0x10, 0x20, 0x30, 0x40
    base = 0x100000

    def ask(kind, *words, more=b"", files=0, carried=0, strict=0):
        numbers = list(words) + [0] * (4 - len(words))
        packet = struct.pack("<II4QIIQBBBB4x", 0, kind, *numbers, 1000, 1000, 1, 0, 0, carried, strict)
        return cxi_step(1 | files, packet + more)

    hello = ask(1, 2, 0, base, 0, files=SOCKET)
    share = ask(6, base, 0x20000, 0, files=FIXED)

    def write(command, **rest):
        return ask(2, more=command, **rest)

    lni = write(struct.pack("<IIQII", 1, 0, base, 1, 0))
    ct = write(struct.pack("<IIQIIQ", 25, 0, base, 1, 0, base + 0x6000))
    wait = write(struct.pack("<IIQII", 23, 0, base, 1, 0))
    buffer = struct.pack("<IIQIIQQII", 11, 0, base, 1, 0, base, 0x1000, 0x200 | 4 | 8, 0) + struct.pack("<iiiB3xi4xQB7x", 0, 0, 0, 0, 5, 0, 1)
    piece = struct.pack("<IiiIQQQ", 0, 5, 0, 0, 0, 0x2000, 0)
    asked_piece = struct.pack("<IiiIQQQ", 0, 5, 0, 9, 0, 0x2000, 0)
    return {
        "hello": hello,
        "hello-twice": hello + hello,
        "hello-no-socket": ask(1, 2, 0, base, 0),
        "hello-version": ask(1, 1, 0, files=SOCKET) + ask(1, 2, 99, files=SOCKET) + ask(1, 2, 0, files=BOTH),
        "hello-strict": ask(1, 2, 0, base, 0, files=SOCKET, strict=1, more=b"drop=5%,reorder=5%,seed=3") + share + lni + ct + ask(11) + ask(11),
        "hello-faults": ask(1, 2, 0, base, 0, files=SOCKET, more=b"dup=1%") + ask(1, 2, 0, base, 0, files=SOCKET, more=b"drop=x"),
        "early": share + lni + ask(3, 4096, 4096) + ask(5, 1),
        "objects": hello + share + lni + ct + wait,
        "map": hello + share + lni + ct + ask(3, 4096, 4096) + ask(3, 4096, 4096) + ask(4, 4096) + ask(4, 4096),
        "waits": hello + share + lni + wait + ask(5, 1) + ask(5, 1) + ask(5, 77) + write(struct.pack("<IIQII", 24, 0, base, 1, 0)),
        "shares": hello + share + share + ask(6, base, 0x1000, 0, files=LOOSE) + ask(7, base) + ask(7, base) + ask(6, 1, 2**64 - 1, 0, files=FIXED)
        + ask(6, base, 0x20000, 0x10000, files=FIXED),
        "unshare-in-use": hello + share + lni + ct + ask(7, base) + lni,
        "carried": hello + share + lni + write(piece + buffer, files=FIXED, carried=1) + ask(8, 1),
        "carried-asked": hello + share + lni + write(asked_piece + buffer, carried=1),
        "carried-missing": hello + share + lni + write(piece + buffer, carried=1) + write(piece, files=FIXED, carried=2) + write(b"", carried=255),
        "numbers": ask(9) + ask(10, 1, 0) + ask(10, 2, 0) + ask(10, 3, 0) + ask(10, 1, 99) + ask(11) + ask(0),
        "magic": cxi_step(0, bytes(64)),
        "short": cxi_step(0, b"x"),
        "long": hello + ask(2, more=bytes(22500)),
    }


def doorbell_store():
    def code(text, *registers):
        content = bytes.fromhex(text)
        return bytes([len(content)]) + content + struct.pack(f"<{len(registers)}Q", *registers)

    return {
        "x86-mov64": code("48893f"),
        "x86-mov32": code("8907"),
        "x86-mov16": code("668907"),
        "x86-mov8": code("8807"),
        "x86-imm32": code("48c70701000000"),
        "x86-imm16": code("66c7070100"),
        "x86-imm8": code("c60701"),
        "x86-disp8": code("48894740"),
        "x86-disp32": code("48898780000000"),
        "x86-sib": code("4a8904a7"),
        "x86-sib-none": code("488904240000"),
        "x86-sib-absolute": code("4889042500100000"),
        "x86-rip": code("48890500100000"),
        "x86-r15": code("4d89bf80000000"),
        "x86-high": code("8827"),
        "x86-movnti": code("480fc307"),
        "x86-movq": code("660fd607"),
        "x86-movq-rex": code("66490f7e07"),
        "x86-movsd": code("f20f1107"),
        "x86-movss": code("f30f1107"),
        "x86-movlps": code("0f1307"),
        "x86-vmovq": code("c5f9d607"),
        "x86-vmovq3": code("c4e1f97e07"),
        "x86-lock": code("f0480107"),
        "x86-segment": code("6448890425000000"),
        "x86-register": code("4889f8"),
        "x86-prefixes": code("666666666666666666666666666648890700"),
        "arm64-str": code("000000f9"),
        "arm64-str-w": code("010400b9"),
        "arm64-strh": code("01040079"),
        "arm64-strb": code("01040039"),
        "arm64-stur": code("014000f8"),
        "arm64-post": code("018400f8"),
        "arm64-pre": code("018c00f8"),
        "arm64-register": code("016822f8"),
        "arm64-stp": code("010800a9"),
        "arm64-stp-pre": code("010880a9"),
        "arm64-str-d": code("000000fd"),
        "arm64-stlr": code("01fc9fc8"),
        "arm64-sp": code("e10300f9"),
        "arm64-zero": code("1f0000f9"),
        "short": code("48"),
        "nothing": b"\0",
    }
