import { ScalarType } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
// oxfmt-ignore
import { base64Pattern, durationPattern, fieldMaskPattern, integerPattern, urlFieldMaskPattern
} from "../../src/openapi/value-schema.ts";
import { parseBase64 } from "../../src/protobuf/messages/json/text-forms.ts";
import { parseFieldMask } from "../../src/protobuf/messages/json/field-mask.ts";
import { integerRangeOf, parseCanonicalInteger } from "../../src/protobuf/messages/json/numbers.ts";
import { parseDuration } from "../../src/protobuf/messages/json/times.ts";

// Each pattern matches exactly the texts that the reader accepts.

/** Returns every text with up to `length` of these characters. */
function textsOf(characters: string, length: number): readonly string[] {
  const texts = [""];
  // The loop also visits the texts that it adds.
  for (const text of texts) if (text.length < length) texts.push(...Array.from(characters, (next) => text + next));
  return texts;
}

/** Returns numbers around each power of ten, each prefix of a limit and the limit, with both signs. */
function numbersAround(limit: bigint): readonly string[] {
  const digits = String(limit);
  const near = Array.from(digits, (_, at) => BigInt(digits.slice(0, at + 1).padEnd(digits.length, "0")));
  const powers = Array.from(digits, (_, at) => 10n ** BigInt(at));
  const values = [...near, ...powers, limit, limit + 1n].flatMap((edge) => [edge - 1n, edge, edge + 1n, edge * 10n]);
  return ["", "-", "00", "-0", "01", "+1", "1.0", " 1", ...values.flatMap((value) => [String(value), `-${value}`])];
}

const integers = (["INT32", "UINT32", "INT64", "UINT64"] as const).map((name) => {
  const range = integerRangeOf(ScalarType[name]);
  if (range === undefined) throw new Error(`${name} is not an integer type`);
  return {
    name: range.name,
    pattern: integerPattern(range),
    texts: numbersAround(range.max),
    reads: (text: string) => parseCanonicalInteger(text, range) !== undefined,
  };
});

const durations = numbersAround(315_576_000_000n).flatMap((text) => [
  text,
  ...["s", ".s", ".5s", ".999999999s", ".0000000000s"].map((end) => `${text}${end}`),
]);

test.each(
  // oxfmt-ignore
  [
    ...integers,
    { name: "Duration", pattern: durationPattern,
      texts: [...durations, "000000000001s", "0000000000001s", "316000000000s"],
      reads: (text: string) => parseDuration(text) !== undefined },
    { name: "bytes", pattern: base64Pattern, texts: textsOf("A/-= ", 6),
      reads: (text: string) => parseBase64(text) !== undefined },
    { name: "FieldMask in JSON", pattern: fieldMaskPattern, texts: textsOf("aB1_`.,*", 4),
      reads: (text: string) => parseFieldMask(text, false) !== undefined },
    { name: "FieldMask in a URL", pattern: urlFieldMaskPattern, texts: textsOf("aB1_`.,*", 4),
      reads: (text: string) => parseFieldMask(text, true) !== undefined },
  ],
)("the pattern of $name matches exactly the texts that the gateway reads", ({ pattern, texts, reads }) => {
  const expression = new RegExp(pattern);
  expect(texts.filter((text) => expression.test(text) !== reads(text))).toEqual([]);
  // Both outcomes occur.
  expect(new Set(texts.map(reads)).size).toBe(2);
});
