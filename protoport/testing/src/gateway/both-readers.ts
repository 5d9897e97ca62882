import { isDeepStrictEqual } from "node:util";
import { create, type DescMessage, type Message } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
// oxfmt-ignore
import { type BoundFields, type ReadServiceJsonOptions, readPartialJson
} from "../../../gateway/src/protobuf/messages/json/index.ts";
import type { Dice } from "../dice.ts";
import { rollJsonText } from "./random-json.ts";
import { randomMessageTypes, randomTypes, rollMessage } from "./random-message.ts";

type Outcome = { readonly message: unknown; readonly ignored: readonly string[]; readonly error: string | undefined };

/** A text that both readers have read. */
export interface Reading {
  /** Whether the exact reader accepted the text. */
  readonly isAccepted: boolean;
  /** The difference between the two outcomes, or `undefined` if the outcomes are equal. */
  readonly problem: string | undefined;
}

const optionsOf = (dice: Dice): ReadServiceJsonOptions => ({
  unknownFields: dice.roll(3) === 0 ? "ignore" : "reject",
  canonicalIntegers: dice.roll(3) === 0,
  ...(dice.roll(2) === 0 ? { registry: randomTypes } : {}),
});

/** Reads a random text with the fast and the exact reader, and compares the outcomes. */
export function readBothWays(dice: Dice): Reading {
  const desc = dice.oneOf(randomMessageTypes);
  const text = rollJsonText(dice, desc);
  const options = optionsOf(dice);
  const path = dice.roll(4) === 0 && !desc.typeName.startsWith("google.protobuf.") ? rollBound(dice, desc) : undefined;
  const tried = outcomeOf(desc, text, options, path, false);
  const exact = outcomeOf(desc, text, options, path, true);
  const description = `${desc.typeName} ${JSON.stringify(options.unknownFields)} ${String(options.canonicalIntegers)}`;
  const problem = isDeepStrictEqual(tried, exact)
    ? undefined
    : `${description} ${JSON.stringify(text)}: ${show(tried)} instead of ${show(exact)}`;
  return { isAccepted: exact.error === undefined, problem };
}

type BoundMessage = { readonly bound: BoundFields; readonly make: () => Message };

// A message in which the path has set one or two fields.
function rollBound(dice: Dice, desc: DescMessage): BoundMessage {
  const scalars = desc.fields.filter(({ fieldKind }) => fieldKind === "scalar");
  const fields = scalars.length === 0 ? [] : [dice.oneOf(scalars)];
  const source = rollMessage(dice, desc);
  return {
    bound: new Map(fields.map((field) => [field, "whole"])),
    make() {
      const into = create(desc);
      for (const { localName, oneof } of fields) {
        const property = oneof?.localName ?? localName;
        if (Object.hasOwn(source, property)) Reflect.set(into, property, Reflect.get(source, property));
      }
      return into;
    },
  };
}

function outcomeOf(
  desc: DescMessage,
  text: string,
  options: ReadServiceJsonOptions,
  path: BoundMessage | undefined,
  isExact: boolean,
): Outcome {
  const into = path?.make();
  // Only the exact reader records which fields a text sets.
  const notes = isExact ? { paths: [], repeated: 0 } : undefined;
  const rules = { bound: path?.bound ?? new Map(), sameAsBound: false };
  try {
    const { message, ignored } = readPartialJson(desc, text, options, rules, into, notes);
    return { message, ignored: [...ignored.names, String(ignored.count)], error: undefined };
  } catch (error) {
    if (!(error instanceof ConnectError)) throw new Error(`${desc.typeName} ${JSON.stringify(text)}`, { cause: error });
    return { message: undefined, ignored: [], error: error.message };
  }
}

const show = ({ message, error }: Outcome): string =>
  error ?? JSON.stringify(message, (_, value: unknown) => (typeof value === "bigint" ? `${value}n` : value));
