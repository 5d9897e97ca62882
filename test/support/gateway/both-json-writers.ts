import { type DescMessage, fromBinary, type Message } from "@bufbuild/protobuf";
import { createMadeWriters, writeQuickly } from "../../../src/gateway/json/made-writer.ts";
import { createMessageWriters } from "../../../src/gateway/json/message-writer.ts";
import type { JsonStyle } from "../../../src/gateway/json/write-context.ts";
import { Dice } from "../dice.ts";
import { randomBytes } from "./random-bytes.ts";
import { putSomethingOdd } from "./odd-values.ts";
import { randomMessageTypes, randomTypes, rollMessage } from "./random-message.ts";
import { randomTypes as rollTypes } from "./random-types.ts";

/** Who writes a message: the code that is made for its type, or the exact writer, to which it is left. */
export type Way = "quick" | "left";

const styles: readonly JsonStyle[] = [
  {},
  { registry: randomTypes },
  { registry: randomTypes, alwaysEmitImplicit: true, int64Numbers: true },
  { useProtoFieldName: true, enumAsInteger: true },
  { shortEnumNames: true, alwaysEmitImplicit: true, useProtoFieldName: true },
];
const writers = styles.map((style) => ({ exact: createMessageWriters(style), made: createMadeWriters(style) }));

/** Writes a message as JSON both ways, in each style. Throws unless the quick way has the same text, or none. */
export function writeJsonBothWays(desc: DescMessage, message: Message): Way {
  let way: Way = "left";
  for (const [index, { exact, made }] of writers.entries()) {
    const writer = made.of(desc);
    const quick = writer && writeQuickly(writer, message);
    if (quick === undefined) continue;
    way = "quick";
    const text = textOf(() => exact.of(desc).write(message));
    if (quick.text !== text)
      throw new Error(`${desc.typeName}, style ${index}: ${String(quick.text)} instead of ${String(text)}`);
  }
  return way;
}

function textOf(write: () => string): string | undefined {
  try {
    return write();
  } catch {
    return undefined;
  }
}

/** Writes random messages both ways, as they are and with a value that may not belong there, and counts the ways. */
export function writeRandomJson(seed: number): Record<Way, number> {
  const dice = new Dice(seed);
  const ways = { quick: 0, left: 0 };
  for (const message of seed % 20 === 0 ? readRandom(dice) : [rollOne(dice)]) {
    if (message === undefined) continue;
    ways[writeJsonBothWays(message.desc, message.message)] += 1;
    if (Object.keys(message.message).length < 2) continue;
    putSomethingOdd(message.message, dice);
    ways[writeJsonBothWays(message.desc, message.message)] += 1;
  }
  return ways;
}

interface Typed {
  readonly desc: DescMessage;
  readonly message: Message;
}

// Of a type that may have extensions and Any.
function rollOne(dice: Dice): Typed {
  const desc = dice.oneOf(randomMessageTypes);
  return { desc, message: rollMessage(dice, desc) };
}

// Of types that have fields of every kind.
function readRandom(dice: Dice): readonly (Typed | undefined)[] {
  return rollTypes(dice).flatMap((desc) => Array.from({ length: 10 }, () => readOne(dice, desc)));
}

function readOne(dice: Dice, desc: DescMessage): Typed | undefined {
  try {
    return { desc, message: fromBinary(desc, randomBytes(desc, dice, { inField: 40, inBytes: 8 })) };
  } catch {
    return undefined;
  }
}
