import { type BinaryReadOptions, type DescMessage, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import { messageWriter, writeFast } from "../../../gateway/src/protobuf/messages/binary/binary-writer.ts";
import { messageReader, readFast } from "../../../gateway/src/protobuf/messages/binary/binary-reader.ts";
import { hasDeclaredWireTypes } from "../../../gateway/src/protobuf/messages/binary/wire-types.ts";
import { Dice } from "../dice.ts";
import { randomBytes } from "./random-bytes.ts";
import { putSomethingOdd } from "./odd-values.ts";
import { randomTypes } from "./random-types.ts";
import { isSameValue } from "./same-value.ts";
import { attempt } from "../attempt.ts";

/** The code that reads or writes a message: generated code (`fast`) or protobuf-es (`fallback`). */
export type Way = "fast" | "fallback";
/** The messages per code path that were read, written as they were read, and written with an unexpected value. */
export type BothWays = Readonly<Record<"read" | "written" | "odd", Record<Way, number>>>;

const messagesPerType = 100;

/** Reads a message with generated code and protobuf-es, with and without unknown fields. Throws if results differ. */
export function readBothWays(desc: DescMessage, bytes: Uint8Array, depth = 100): Way {
  const [way, wayWithout] = [true, false].map((readUnknownFields) => {
    const fast = readFast(messageReader(desc), bytes, depth, readUnknownFields);
    if (fast === undefined) return "fallback";
    const plain = readByProtobufEs(desc, bytes, { recursionLimit: depth, readUnknownFields });
    if (plain !== undefined && isSameValue(fast, plain)) return "fast";
    throw new Error(`${desc.typeName} of ${Buffer.from(bytes).toString("hex")} differs`);
  });
  if (way === undefined || way !== wayWithout) throw new Error(`${desc.typeName} is ${way} with unknown fields`);
  return way;
}

function readByProtobufEs(
  desc: DescMessage,
  bytes: Uint8Array,
  options?: Partial<BinaryReadOptions>,
): Message | undefined {
  try {
    const message = fromBinary(desc, bytes, options);
    return hasDeclaredWireTypes(desc, bytes) ? message : undefined;
  } catch {
    return undefined;
  }
}

/** Writes a message with generated code and with protobuf-es. Throws if the results differ. */
export function writeBothWays(desc: DescMessage, message: Message): Way {
  const fast = writeFast(messageWriter(desc), message);
  if (fast === undefined) return "fallback";
  const plain = attempt(() => toBinary(desc, message));
  if (plain !== undefined && Buffer.compare(fast, plain) === 0) return "fast";
  throw new Error(`${desc.typeName} is written as ${Buffer.from(fast).toString("hex")}`, { cause: message });
}

/** Reads and writes random messages with generated code and protobuf-es. Throws, with the seed, at a difference. */
export function goBothWays(seed: number): BothWays {
  const dice = new Dice(seed);
  const ways = { read: { fast: 0, fallback: 0 }, written: { fast: 0, fallback: 0 }, odd: { fast: 0, fallback: 0 } };
  try {
    for (const desc of randomTypes(dice)) {
      for (let count = 0; count < messagesPerType; count += 1) {
        const bytes = randomBytes(desc, dice, { inField: 40, inBytes: 8 });
        ways.read[readBothWays(desc, bytes)] += 1;
        const message = readByProtobufEs(desc, bytes);
        if (message === undefined) continue;
        ways.written[writeBothWays(desc, message)] += 1;
        putSomethingOdd(message, dice);
        ways.odd[writeBothWays(desc, message)] += 1;
      }
    }
  } catch (error) {
    throw new Error(`seed ${seed}`, { cause: error });
  }
  return ways;
}
