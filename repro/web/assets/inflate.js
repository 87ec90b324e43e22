/* What was packed as gzip, unpacked at once: a browser's own DecompressionStream answers later, and a print waits for
   nothing. RFC 1951 and 1952, for what `gzip` of Python writes: neither a name nor a comment in front. */
"use strict";

const gunzip = (() => {
  const LENGTHS = { base: [], extra: [] }; // of a repeated part, by symbol - 257
  const DISTANCES = { base: [], extra: [] };
  for (let i = 0, at = 3; i < 28; i++) {
    LENGTHS.base.push(at);
    LENGTHS.extra.push(i < 8 ? 0 : (i >> 2) - 1);
    at += 1 << LENGTHS.extra[i];
  }
  LENGTHS.base.push(258);
  LENGTHS.extra.push(0);
  for (let i = 0, at = 1; i < 30; i++) {
    DISTANCES.base.push(at);
    DISTANCES.extra.push(i < 4 ? 0 : (i >> 1) - 1);
    at += 1 << DISTANCES.extra[i];
  }
  const ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15]; // in which lengths of lengths stand
  const FIXED = [[[144, 8], [112, 9], [24, 7], [8, 8]], [[30, 5]]].map((of) => table(of.flatMap(([n, length]) => Array(n).fill(length))));

  const CHECK = Int32Array.from({ length: 256 }, (_, one) => {
    for (let i = 0; i < 8; i++) one = one & 1 ? (one >>> 1) ^ 0xedb88320 : one >>> 1;
    return one;
  });

  /** CRC-32, which stands behind what was packed. */
  function check(bytes) {
    let sum = -1;
    for (let i = 0; i < bytes.length; i++) sum = CHECK[(sum ^ bytes[i]) & 255] ^ (sum >>> 8);
    return ~sum >>> 0;
  }

  /** Codes of these lengths, asked with the bits that come next: 16 symbol + length; 0 where no code begins so. */
  function table(lengths) {
    const most = Math.max(1, ...lengths);
    const [codes, next] = [new Int32Array(1 << most), new Int32Array(17)];
    for (const length of lengths) if (length) next[length + 1]++;
    for (let length = 1; length < 17; length++) next[length] = (next[length] + next[length - 1]) << 1;
    lengths.forEach((length, symbol) => {
      if (!length) return;
      let code = 0;
      for (let i = 0, left = next[length]++; i < length; i++, left >>= 1) code = (code << 1) | (left & 1); // the first bit is the lowest
      for (; code < codes.length; code += 1 << length) codes[code] = (symbol << 4) | length;
    });
    return { codes, mask: codes.length - 1 };
  }

  /** The bytes of a whole file. Raises an Error for one that is none, or is damaged. */
  return (packed) => {
    const wrong = (what) => new Error(`Expected bytes packed as gzip, got ${what}.`);
    if (packed.length < 18 || packed[0] !== 31 || packed[1] !== 139 || packed[2] !== 8 || packed[3]) throw wrong("something else");
    const end = packed.length - 8; // behind it what CRC-32 and size should be
    const [sum, size] = [0, 4].map((at) => new DataView(packed.buffer, packed.byteOffset + end).getUint32(at, true));
    if (size > 1100 * packed.length) throw wrong("an impossible size"); // a bit is 129 bytes at most
    const out = new Uint8Array(size);
    let [at, bits, n, filled] = [10, 0, 0, 0]; // n bits of `bits` were read and not used

    function take(count) {
      while (n < count) [bits, n] = [bits | (packed[at++] << n), n + 8];
      const value = bits & ((1 << count) - 1);
      [bits, n] = [bits >>> count, n - count];
      return value;
    }

    function symbol({ codes, mask }) {
      for (; n < 15; n += 8) bits |= packed[at++] << n;
      const found = codes[bits & mask];
      if (!found) throw wrong("an unknown code");
      bits >>>= found & 15;
      n -= found & 15;
      return found >> 4;
    }

    /** Tables of a block that brings its own. */
    function announced() {
      const [literals, distances, n_] = [take(5) + 257, take(5) + 1, take(4) + 4];
      const of = Array(19).fill(0);
      for (let i = 0; i < n_; i++) of[ORDER[i]] = take(3);
      const [codes, lengths] = [table(of), []];
      while (lengths.length < literals + distances) {
        const one = symbol(codes);
        if (one < 16) lengths.push(one);
        else if (one === 16) lengths.push(...Array(take(2) + 3).fill(lengths.at(-1)));
        else lengths.push(...Array(one === 17 ? take(3) + 3 : take(7) + 11).fill(0));
      }
      return [table(lengths.slice(0, literals)), table(lengths.slice(literals))];
    }

    for (let last = 0; !last;) {
      if (at > packed.length) throw wrong("too few");
      last = take(1);
      const kind = take(2);
      if (kind === 3) throw wrong("an unknown kind of block");
      if (kind === 0) {
        at -= n >> 3; // whole bytes were read too early
        [bits, n] = [0, 0];
        const count = packed[at] | (packed[at + 1] << 8);
        if (filled + count > size) throw wrong("too many");
        out.set(packed.subarray(at + 4, at + 4 + count), filled);
        [at, filled] = [at + 4 + count, filled + count];
        continue;
      }
      const [literals, distances] = kind === 1 ? FIXED : announced();
      for (let one = symbol(literals); one !== 256; one = symbol(literals)) {
        if (at > packed.length || filled > size) throw wrong(filled > size ? "too many" : "too few");
        if (one < 256) {
          out[filled++] = one;
          continue;
        }
        const length = LENGTHS.base[one - 257] + take(LENGTHS.extra[one - 257]);
        const far = symbol(distances);
        const from = filled - DISTANCES.base[far] - take(DISTANCES.extra[far]);
        for (let i = 0; i < length; i++) out[filled++] = out[from + i];
      }
    }
    if (filled !== size || check(out) !== sum) throw wrong("a wrong size or checksum");
    return out;
  };
})();
