import { type DescMessage, fromBinary, type Message } from "@bufbuild/protobuf";
import { readQuickly } from "../../../src/gateway/binary/binary-reader.ts";
import { messageReader } from "../../../src/gateway/binary/message-reader.ts";
import { hasDeclaredWireTypes } from "../../../src/gateway/binary/wire-types.ts";
import { Dice } from "../dice.ts";
import { randomBytes } from "./random-bytes.ts";
import { randomTypes } from "./random-types.ts";
import { isSameValue } from "./same-value.ts";

/** Who reads or writes a message: the quick way, or protobuf-es, to which it is left. */
export type Way = "quick" | "left";

/** Messages of each random type. */
const messagesPerType = 100;

/** Reads a message both ways. Throws unless the quick way has the same message, or none. */
export function readBothWays(desc: DescMessage, bytes: Uint8Array, depth = 100): Way {
  const quick = readQuickly(messageReader(desc), bytes, depth);
  if (quick === undefined) return "left";
  const plain = readByProtobufEs(desc, bytes, depth);
  if (plain !== undefined && isSameValue(quick, plain)) return "quick";
  throw new Error(`${desc.typeName} of ${Buffer.from(bytes).toString("hex")} differs`);
}

function readByProtobufEs(desc: DescMessage, bytes: Uint8Array, recursionLimit: number): Message | undefined {
  try {
    const message = fromBinary(desc, bytes, { recursionLimit });
    return hasDeclaredWireTypes(desc, bytes) ? message : undefined;
  } catch {
    return undefined;
  }
}

/** Does random messages of random types both ways, and counts the ways. Throws at the first difference, and says the seed. */
export function goBothWays(seed: number): Record<Way, number> {
  const dice = new Dice(seed);
  const ways = { quick: 0, left: 0 };
  try {
    for (const desc of randomTypes(dice)) {
      for (let count = 0; count < messagesPerType; count += 1) {
        const bytes = randomBytes(desc, dice, { inField: 40, inBytes: 8 });
        ways[readBothWays(desc, bytes)] += 1;
      }
    }
  } catch (error) {
    throw new Error(`seed ${seed}`, { cause: error });
  }
  return ways;
}
