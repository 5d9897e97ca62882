import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { HpackDecoder } from "../../../src/engine/http2/hpack/decoder.ts";
import { emptyTable, encodeBlock } from "../../../src/engine/http2/hpack/encoder.ts";
import { buildStep, Dice, toolsFolder } from "@protoport/testing";

// Header lists go from Go's encoder, golang.org/x/net/http2/hpack, to our decoder, and from our encoder to Go's
// decoder. Go's encoder uses what ours does not: the dynamic table with evictions and size changes, Huffman coding
// where it is shorter, and never-indexed literals.

/** The result of the round trips in both directions. */
export interface RoundTrips {
  readonly connections: number;
  readonly blocks: number;
  /** One line for the first failure in each direction, with the seed that repeats it. */
  readonly problems: readonly string[];
}

interface HeaderList {
  /** Sizes that Go's table is set to before the block. */
  readonly tableSizes: readonly number[];
  /** Name, value, name, value, … */
  readonly fields: readonly string[];
  /** For each field, whether it must never be indexed. */
  readonly sensitive: readonly boolean[];
}

interface Reply {
  readonly Blocks: readonly string[];
  readonly Lists: readonly (readonly { readonly Name: string; readonly Value: string }[])[] | null;
  readonly Problem: string;
}

/** Runs round trips on this many connections, with consecutive seeds. */
export async function runRoundTrips(firstSeed: number, connections: number): Promise<RoundTrips> {
  const program = join(toolsFolder("hpack"), "hpack");
  await buildStep("go", ["build", "-o", program, "."], { folder: join(import.meta.dirname, "hpack") });
  const child = spawn(program, { stdio: ["pipe", "pipe", "inherit"] });
  const replies = createInterface(child.stdout)[Symbol.asyncIterator]();
  let blocks = 0;
  let theirs: string | undefined;
  let ours: string | undefined;
  for (let seed = firstSeed; seed < firstSeed + connections; seed++) {
    const dice = new Dice(seed);
    const lists = randomLists(dice, anyOctet);
    const sent = randomLists(dice, octetOfField).map(withoutPseudoFields);
    child.stdin.write(`${JSON.stringify({ Lists: lists.map(toJson), Blocks: sent.map(encodeOurs) })}\n`);
    const { value } = await replies.next();
    if (value === undefined) throw new Error("the program in Go has exited");
    const reply: Reply = JSON.parse(value);
    blocks += lists.length + sent.length;
    theirs ??= problemOfGoBlocks(lists, reply, seed);
    ours ??= problemOfOurBlocks(sent, reply, seed);
  }
  child.stdin.end();
  await once(child, "close");
  return { connections, blocks, problems: [theirs, ours].filter((problem) => problem !== undefined) };
}

function problemOfGoBlocks(lists: readonly HeaderList[], { Blocks }: Reply, seed: number): string | undefined {
  const decoder = new HpackDecoder(maxListBytes);
  for (const [i, { fields }] of lists.entries()) {
    const block = Buffer.from(Blocks[i] ?? "", "base64");
    // A block is between other frames in its chunk.
    const chunk = Buffer.concat([Buffer.alloc(i, 0xff), block, Buffer.alloc(3, 0xff)]);
    const read = readOrProblem(() => decoder.decode(chunk, i, i + block.byteLength).fields);
    if (!isSame(read, fields))
      return `seed ${seed}: our decoder decodes Go's block ${i}, ${block.toString("hex")}, to ${shown(read)}, want ${shown(fields)}`;
  }
  return undefined;
}

function problemOfOurBlocks(lists: readonly HeaderList[], { Lists, Problem }: Reply, seed: number): string | undefined {
  if (Problem !== "") return `seed ${seed}: Go's decoder cannot decode our block: ${Problem}`;
  for (const [i, { fields }] of lists.entries()) {
    const read = (Lists?.[i] ?? []).flatMap(({ Name, Value }) => [fromJson(Name), fromJson(Value)]);
    if (!isSame(read, fields))
      return `seed ${seed}: Go's decoder decodes our block ${i} to ${shown(read)}, want ${shown(fields)}`;
  }
  return undefined;
}

function readOrProblem(read: () => readonly string[]): readonly string[] {
  try {
    return read();
  } catch (error) {
    return [String(error)];
  }
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((text, i) => text === b[i]);
}

const shown = (fields: readonly string[]): string => JSON.stringify(fields).slice(0, 500);

// Far above these lists, because other tests cover the list limit.
const maxListBytes = 1 << 24;
const tableSizes = [0, 40, 100, 500, 4096];
const lengths = [0, 1, 5, 20, 60, 126, 127, 128, 300, 5000];
const names: readonly string[] = (
  ":method :path :status accept-encoding authorization content-type cookie date te " +
  "grpc-timeout traceparent user-agent x x-request-id www-authenticate"
).split(" ");
const values = ["", "GET", "POST", "/", "200", "204", "gzip, deflate", "application/grpc", "trailers", "Bearer 0123"];

/** Returns a connection's header lists, which are repetitive, as clients' lists are. */
function randomLists(dice: Dice, octet: (dice: Dice) => number): readonly HeaderList[] {
  const lists: HeaderList[] = [];
  for (let count = 1 + dice.roll(12); count > 0; count--) {
    const before = lists.at(-1);
    if (before !== undefined && dice.roll(3) === 0) lists.push({ ...before, tableSizes: [] });
    else lists.push(randomList(dice, octet));
  }
  return lists;
}

function randomList(dice: Dice, octet: (dice: Dice) => number): HeaderList {
  const fields: string[] = [];
  const sensitive: boolean[] = [];
  for (let count = dice.roll(12); count > 0; count--) {
    const value = dice.roll(3) > 0 ? dice.oneOf(values) : randomText(dice, octet);
    fields.push(dice.roll(4) > 0 ? dice.oneOf(names) : `x-${String(dice.roll(1000))}`, value);
    sensitive.push(dice.roll(6) === 0);
  }
  const changes = dice.roll(8) === 0 ? 1 + dice.roll(2) : 0;
  return { tableSizes: Array.from({ length: changes }, () => dice.oneOf(tableSizes)), fields, sensitive };
}

function randomText(dice: Dice, octet: (dice: Dice) => number): string {
  // Digits are short in Huffman code, so Go also uses it for strings with one other octet. Most other octets are so
  // long that Go does not code strings that consist of them.
  const odd = dice.oneOf([1, 30, 1000]);
  const octets = Array.from({ length: dice.oneOf(lengths) }, () =>
    dice.roll(odd) === 0 ? octet(dice) : 0x30 + dice.roll(10),
  );
  return Buffer.from(octets).toString("latin1");
}

const anyOctet = (dice: Dice): number => dice.roll(256);

/** Our encoder accepts only valid fields (RFC 9110 §5.5). */
function octetOfField(dice: Dice): number {
  const octet = 0x20 + dice.roll(0xe0);
  return octet === 0x7f ? 0x09 : octet;
}

/** Our encoder accepts no pseudo-header fields. */
function withoutPseudoFields(list: HeaderList): HeaderList {
  return { ...list, fields: list.fields.filter((_, i, all) => !all[i - (i % 2)]?.startsWith(":")) };
}

function encodeOurs({ fields }: HeaderList, i: number): string {
  const block = encodeBlock(fields);
  return (i === 0 ? Buffer.concat([emptyTable, block]) : block).toString("base64");
}

function toJson({ tableSizes: TableSizes, fields, sensitive }: HeaderList): object {
  const Fields = sensitive.map((Sensitive, i) => ({
    Name: inJson(fields[i * 2] ?? ""),
    Value: inJson(fields[i * 2 + 1] ?? ""),
    Sensitive,
  }));
  return { TableSizes, Fields };
}

const inJson = (text: string): string => Buffer.from(text, "latin1").toString("base64");
const fromJson = (text: string): string => Buffer.from(text, "base64").toString("latin1");
