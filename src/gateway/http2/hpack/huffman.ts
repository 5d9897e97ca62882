import { endOfString, huffmanCodeLengths } from "./huffman-code.ts";

/**
 * The decoder: a machine that takes four bits a step. A state is an inner node of the code's tree; as no code is
 * shorter than five bits, a step completes at most one symbol.
 */
interface Machine {
  /** For each state and four bits: the next state in the upper half, the symbol completed in the lower. */
  readonly steps: Int32Array;
  /** How many one-bits lead from the root to a state, for the states on that path; -1 elsewhere. */
  readonly paddingBits: Int8Array;
}

// Built with the first string: that takes 5 ms, which a server need not spend before it listens.
let machine: Machine | undefined;

const symbolNone = 0x1ff;

// Where the octets of a string are put together, which is not outlived by any of them. Longer strings have a place of their own.
const scratch = Buffer.allocUnsafeSlow(4096);

/**
 * Decodes a Huffman-coded string (RFC 7541 §5.2), each octet one character.
 *
 * @returns `undefined` for what the RFC calls a decoding error: the end-of-string symbol, or padding that
 * is longer than seven bits or not all ones
 */
export function decodeHuffman(bytes: Uint8Array, from: number, to: number): string | undefined {
  const { steps, paddingBits } = (machine ??= buildMachine());
  // No code is shorter than five bits.
  const lengthMax = Math.floor(((to - from) * 8) / 5);
  // Octets first and one string of them: a string that grows by characters costs three times as much.
  const octets = lengthMax <= scratch.byteLength ? scratch : Buffer.allocUnsafeSlow(lengthMax);
  let length = 0;
  let state = 0;
  for (let at = from; at < to; at++) {
    const byte = bytes[at] as number;
    const high = steps[state * 16 + (byte >> 4)] as number;
    const low = high < 0 ? high : (steps[(high >> 9) * 16 + (byte & 15)] as number);
    if (low < 0) return undefined;
    state = low >> 9;
    if ((high & symbolNone) !== symbolNone) octets[length++] = high & symbolNone;
    if ((low & symbolNone) !== symbolNone) octets[length++] = low & symbolNone;
  }
  const padding = paddingBits[state] as number;
  return padding >= 0 && padding <= 7 ? octets.toString("latin1", 0, length) : undefined;
}

/** Encodes a string of octets, padded with ones. For tests and clients; answers are sent uncoded. */
export function encodeHuffman(text: string): Uint8Array {
  const codes = canonicalCodes();
  const bytes: number[] = [];
  let bits = 0n;
  let count = 0;
  for (let at = 0; at < text.length; at++) {
    const symbol = text.charCodeAt(at);
    const length = huffmanCodeLengths[symbol] ?? 0;
    bits = (bits << BigInt(length)) | BigInt(codes[symbol] ?? 0);
    count += length;
    while (count >= 8) {
      count -= 8;
      bytes.push(Number((bits >> BigInt(count)) & 255n));
      bits &= (1n << BigInt(count)) - 1n;
    }
  }
  if (count > 0) bytes.push(Number((bits << BigInt(8 - count)) | ((1n << BigInt(8 - count)) - 1n)));
  return Uint8Array.from(bytes);
}

type Tree = { readonly children: [Tree | number | undefined, Tree | number | undefined]; readonly state: number };

function canonicalCodes(): readonly number[] {
  const symbols = huffmanCodeLengths.map((length, symbol) => ({ length, symbol }));
  symbols.sort((a, b) => a.length - b.length || a.symbol - b.symbol);
  const assigned: number[] = [];
  let code = 0;
  let previous = symbols[0]?.length ?? 0;
  for (const { length, symbol } of symbols) {
    code = code * 2 ** (length - previous);
    previous = length;
    assigned[symbol] = code++;
  }
  return assigned;
}

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
  for (let ones = 0; typeof node === "object"; ones++) {
    bits[node.state] = ones;
    node = node.children[1];
  }
  return bits;
}
