import { type DescMessage, fromBinary, type Message } from "@bufbuild/protobuf";
import { compileForm } from "../../../gateway/src/protobuf/messages/json/write-json.ts";
import { createMessageForms } from "../../../gateway/src/protobuf/messages/json/message-forms.ts";
import type { JsonStyle } from "../../../gateway/src/protobuf/messages/json/json-elements.ts";
import { Dice } from "../dice.ts";
import { randomBytes } from "./random-bytes.ts";
import { putSomethingOdd } from "./odd-values.ts";
import { randomMessageTypes, randomTypes, rollMessage } from "./random-message.ts";
import { randomTypes as rollTypes } from "./random-types.ts";

export type Outcome = "written" | "refused";

const styles: readonly JsonStyle[] = [
  {},
  { registry: randomTypes },
  { registry: randomTypes, alwaysEmitImplicit: true, int64Numbers: true },
  { useProtoFieldName: true, enumAsInteger: true },
  { alwaysEmitImplicit: true, useProtoFieldName: true },
];
const forms = styles.map((each) => ({
  made: createMessageForms(each, compileForm),
  closures: createMessageForms(each),
}));

// Throws unless both writers, in each style, return the same text or throw the same error.
function writeJsonBothWays(desc: DescMessage, message: Message): Outcome {
  let outcome: Outcome = "refused";
  for (const [index, { made, closures }] of forms.entries()) {
    const one = attempt(() => JSON.stringify(made.writerOf(desc).toJson(message)));
    const other = attempt(() => JSON.stringify(closures.writerOf(desc).toJson(message)));
    if (one.text !== other.text || one.problem !== other.problem)
      throw new Error(`${desc.typeName}, style ${index}: ${JSON.stringify(one)} instead of ${JSON.stringify(other)}`);
    if (one.text !== undefined) outcome = "written";
  }
  return outcome;
}

function attempt(write: () => string): { readonly text?: string; readonly problem?: string } {
  try {
    return { text: write() };
  } catch (error) {
    return { problem: String(error) };
  }
}

/** Writes random messages with both writers, unchanged and with an unexpected value, and counts the outcomes. */
export function writeRandomJson(seed: number): Record<Outcome, number> {
  const dice = new Dice(seed);
  const outcomes = { written: 0, refused: 0 };
  for (const message of seed % 20 === 0 ? readRandom(dice) : [rollOne(dice)]) {
    if (message === undefined) continue;
    outcomes[writeJsonBothWays(message.desc, message.message)] += 1;
    if (Object.keys(message.message).length < 2) continue;
    putSomethingOdd(message.message, dice);
    outcomes[writeJsonBothWays(message.desc, message.message)] += 1;
  }
  return outcomes;
}

type Typed = { readonly desc: DescMessage; readonly message: Message };

// Returns a random message from a type that may have extensions and Any.
function rollOne(dice: Dice): Typed {
  const desc = dice.oneOf(randomMessageTypes);
  return { desc, message: rollMessage(dice, desc) };
}

// Returns messages from random types that have every kind of field.
const readRandom = (dice: Dice): readonly (Typed | undefined)[] =>
  rollTypes(dice).flatMap((desc) => Array.from({ length: 10 }, () => readOne(dice, desc)));

function readOne(dice: Dice, desc: DescMessage): Typed | undefined {
  try {
    return { desc, message: fromBinary(desc, randomBytes(desc, dice, { inField: 40, inBytes: 8 })) };
  } catch {
    return undefined;
  }
}
