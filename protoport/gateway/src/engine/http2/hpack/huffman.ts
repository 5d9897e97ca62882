/**
 * Code lengths in bits (RFC 7541 Appendix B). Entries 0 to 255 are for byte values, and entry 256 is for the
 * end-of-string symbol. The code is canonical, so the lengths determine all codes.
 */
// oxfmt-ignore
export const huffmanCodeLengths: readonly number[] = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
  6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
  13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
  15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
  20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
  22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
  26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
  20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
  30,
];

/** The symbol that strings must not contain (RFC 7541 §5.2). */
const endOfString = 256;

/** Returns the code for each symbol. Shorter codes come first, and codes of one length ascend with their symbols. */
export function canonicalCodes(): readonly number[] {
  const symbols = huffmanCodeLengths.map((length, symbol) => ({ length, symbol }));
  symbols.sort((a, b) => a.length - b.length || a.symbol - b.symbol);
  const codeBySymbol: number[] = [];
  let code = 0;
  let previous = symbols[0]?.length ?? 0;
  for (const { length, symbol } of symbols) {
    code = code * 2 ** (length - previous);
    previous = length;
    codeBySymbol[symbol] = code++;
  }
  return codeBySymbol;
}

// A state machine that decodes four bits per step. A state is an inner node of the code tree. No code is shorter than
// five bits, so a step completes at most one symbol.
interface Machine {
  /** The step for each state and four bits: the next state, and the completed symbol in the lower nine bits. */
  readonly steps: Int32Array;
  /** For each state, the number of 1 bits on its path from the root, or -1 if the path has a 0 bit. */
  readonly paddingBits: Int8Array;
}

/** Builds the state machine for the first decoded string. Building takes 5 ms, which would delay a server's start. */
class LazyMachine {
  #machine: Machine | undefined;

  get built(): Machine {
    return (this.#machine ??= buildMachine());
  }
}

const machine = new LazyMachine();

const symbolNone = 0x1ff;

// Buffer for decoded strings with up to 4 KiB. Decoding is synchronous, so all strings can share the buffer.
const scratch = Buffer.allocUnsafeSlow(4096);

/**
 * Decodes a Huffman-coded string (RFC 7541 §5.2), one character for each byte.
 *
 * @returns `undefined` for a string with the end-of-string symbol or invalid padding. Valid padding has at most seven 1
 * bits
 */
export function decodeHuffman(bytes: Uint8Array, from: number, to: number): string | undefined {
  const { steps, paddingBits } = machine.built;
  // Each code has at least five bits, which limits the number of symbols.
  const maxLength = Math.floor(((to - from) * 8) / 5);
  // Collects bytes and converts all bytes at the end. Appending characters to a string costs three times as much.
  const octets = maxLength <= scratch.byteLength ? scratch : Buffer.allocUnsafeSlow(maxLength);
  let length = 0;
  let state = 0;
  for (let at = from; at < to; at++) {
    const byte = bytes[at] ?? 0;
    const high = steps[state * 16 + (byte >> 4)] ?? -1;
    const low = high < 0 ? high : (steps[(high >> 9) * 16 + (byte & 15)] ?? -1);
    if (low < 0) return undefined;
    state = low >> 9;
    if ((high & symbolNone) !== symbolNone) octets[length++] = high & symbolNone;
    if ((low & symbolNone) !== symbolNone) octets[length++] = low & symbolNone;
  }
  const padding = paddingBits[state] ?? -1;
  return padding >= 0 && padding <= 7 ? octets.toString("latin1", 0, length) : undefined;
}

type Tree = { readonly children: [Tree | number | undefined, Tree | number | undefined]; readonly state: number };

function buildMachine(): Machine {
  const tree = buildTree();
  return { steps: buildSteps(tree), paddingBits: buildPaddingBits(tree) };
}

function buildTree(): readonly Tree[] {
  const codes = canonicalCodes();
  const nodes: Tree[] = [{ children: [undefined, undefined], state: 0 }];
  for (const [symbol, length] of huffmanCodeLengths.entries()) {
    let node = nodes[0] as Tree;
    for (let bit = length - 1; bit > 0; bit--) {
      const side = Math.floor((codes[symbol] ?? 0) / 2 ** bit) & 1;
      let child = node.children[side];
      if (typeof child !== "object") {
        child = { children: [undefined, undefined], state: nodes.length };
        nodes.push(child);
        node.children[side] = child;
      }
      node = child;
    }
    node.children[(codes[symbol] ?? 0) & 1] = symbol;
  }
  return nodes;
}

function buildSteps(tree: readonly Tree[]): Int32Array {
  const table = new Int32Array(tree.length * 16);
  for (const node of tree) {
    for (let bits = 0; bits < 16; bits++) table[node.state * 16 + bits] = follow(tree, node, bits);
  }
  return table;
}

function follow(tree: readonly Tree[], start: Tree, bits: number): number {
  let node = start;
  let symbol = symbolNone;
  for (let shift = 3; shift >= 0; shift--) {
    const child = node.children[(bits >> shift) & 1];
    if (child === undefined || child === endOfString) return -1;
    if (typeof child === "number") {
      symbol = child;
      node = tree[0] as Tree;
    } else node = child;
  }
  return (node.state << 9) | symbol;
}

function buildPaddingBits(tree: readonly Tree[]): Int8Array {
  const bits = new Int8Array(tree.length).fill(-1);
  let node: Tree | number | undefined = tree[0];
  for (let depth = 0; typeof node === "object"; depth++) {
    bits[node.state] = depth;
    node = node.children[1];
  }
  return bits;
}
