import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { JsonScanner } from "../../../../src/protobuf/messages/json/json-scanner.ts";
import { numRunsOf } from "@protoport/testing/process";

// Returns the value that JSON.parse would return, using only the scanner.
function read(scanner: JsonScanner): unknown {
  const kind = scanner.peek();
  switch (kind) {
    case "object": {
      const entries: [string, unknown][] = [];
      scanner.openObject();
      for (let key = scanner.firstKey(); key !== undefined; key = scanner.nextKey()) entries.push([key, read(scanner)]);
      return Object.fromEntries(entries);
    }
    case "array": {
      const items: unknown[] = [];
      scanner.readArray(() => items.push(read(scanner)));
      return items;
    }
    case "string":
      return scanner.readString();
    case "number":
      return Number(scanner.readNumber());
    default:
      scanner.readLiteral(kind);
      return kind === "null" ? null : kind === "true";
  }
}

function readAll(text: string): unknown {
  const scanner = new JsonScanner(text);
  const value = read(scanner);
  scanner.finish();
  return value;
}

// Returns whether all strings and keys in a value are well-formed Unicode.
function isUnicode(value: unknown): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (typeof value !== "object" || value === null) return true;
  return Object.entries(value).every(([key, inner]) => key.isWellFormed() && isUnicode(inner));
}

function skipAll(text: string): void {
  const scanner = new JsonScanner(text);
  scanner.skipValue();
  scanner.finish();
}

function skipSyntaxOf(text: string): void {
  const scanner = new JsonScanner(text);
  scanner.skipSyntax();
  scanner.finish();
}

function reasonOf(skip: (text: string) => void, text: string): string {
  try {
    skip(text);
    return "accepted";
  } catch (error) {
    return String(error);
  }
}

/** Texts that are refused even if only their syntax is checked. */
// oxfmt-ignore
const malformed = [
  { why: "an empty string", text: "" }, { why: "only white space", text: " \t\r\n" },
  { why: "a byte order mark", text: "\uFEFF{}" }, { why: "a no-break space", text: "\u00A0{}" },
  { why: "a form feed", text: "\f{}" }, { why: "two values", text: "{} {}" },
  { why: "text after the value", text: "{} x" }, { why: "a NUL after the value", text: "{}\0" },
  { why: "a comment after the value", text: "{} // x" }, { why: "a comment in an object", text: "{/**/}" },
  { why: "a trailing comma in an object", text: '{"a":1,}' }, { why: "a trailing comma in an array", text: "[1,]" },
  { why: "a leading comma", text: "[,1]" }, { why: "a missing comma", text: "[1 2]" },
  { why: "a missing colon", text: '{"a" 1}' }, { why: "a missing value", text: '{"a":}' },
  { why: "a key without quotation marks", text: "{a:1}" }, { why: "a key in single quotes", text: "{'a':1}" },
  { why: "an unterminated object", text: '{"a":1' }, { why: "an unterminated array", text: "[1" },
  { why: "an array closed as an object", text: "[1}" }, { why: "an object closed as an array", text: '{"a":1]' },
  { why: "an extra closing bracket", text: "[]]" }, { why: "an unterminated string", text: '"a' },
  { why: "a string that ends in an escape", text: '"a\\' }, { why: "a line feed in a string", text: '"a\nb"' },
  { why: "a line feed after an escape in a string", text: '"\\n\nb"' }, { why: "a NUL in a string", text: '"\0"' },
  { why: "an unknown escape", text: '"\\x41"' }, { why: "the escape \\constructor", text: '"\\constructor"' },
  { why: "an upper-case escape", text: '"\\N"' }, { why: "a short unicode escape", text: '"\\u12"' },
  { why: "a unicode escape with a letter beyond f", text: '"\\u12g4"' }, { why: "a leading zero", text: "01" },
  { why: "a plus sign", text: "+1" }, { why: "only a minus sign", text: "-" },
  { why: "a dot without digits", text: "1." }, { why: "a fraction without an integer part", text: ".5" },
  { why: "an exponent without digits", text: "1e" }, { why: "an exponent of only a sign", text: "1e+" },
  { why: "hexadecimal", text: "0x10" }, { why: "NaN", text: "NaN" }, { why: "Infinity", text: "Infinity" },
  { why: "minus Infinity", text: "-Infinity" }, { why: "upper-case true", text: "True" },
  { why: "a truncated literal", text: "tru" }, { why: "a longer literal", text: "trueish" },
  { why: "nil", text: "nil" }, { why: "undefined", text: "undefined" },
  { why: "101 levels of arrays", text: `${"[".repeat(101)}${"]".repeat(101)}` },
  { why: "101 levels of objects", text: `${'{"a":'.repeat(101)}1${"}".repeat(101)}` },
  { why: "a million unterminated arrays", text: "[".repeat(1_000_000) },
];

/** Texts with valid syntax whose meaning is ambiguous. */
const ambiguous = [
  { why: "a lone high surrogate", text: '"\\ud800"' },
  { why: "a lone low surrogate", text: '"\\udc00"' },
  { why: "surrogates in the wrong order", text: '"\\udc00\\ud800"' },
  { why: "a lone surrogate in a key", text: '{"\\ud800":1}' },
  { why: "a duplicate key", text: '{"a":1,"a":2}' },
  { why: "a nested duplicate key with an escape", text: '[{"a":1,"\\u0061":2}]' },
];

const refused = [...malformed, ...ambiguous.filter(({ why }) => why.includes("surrogate"))];

describe("JsonScanner", () => {
  test.each(malformed)("refuses $why in skipSyntax()", ({ text }) => {
    expect(reasonOf(skipSyntaxOf, text)).toBe(reasonOf(skipAll, text));
  });

  test.each(ambiguous)("accepts $why in skipSyntax()", ({ text }) => {
    expect(() => skipSyntaxOf(text)).not.toThrow();
    expect(() => skipAll(text)).toThrow(/surrogate|set more than once/);
  });

  test.each(refused)("refuses $why when it reads the value", ({ text }) => {
    expect(() => readAll(text)).toThrow(/^(?:not valid JSON|nested deeper)/);
  });

  test.each(refused)("refuses $why when it skips the value", ({ text }) => {
    expect(() => skipAll(text)).toThrow(/^(?:not valid JSON|nested deeper)/);
  });

  test.each([
    { text: " { } ", want: {} },
    { text: "\t[\r\n]\n", want: [] },
    { text: '{"a":[1,-2.5e-3,"x",true,false,null,{}]}', want: { a: [1, -0.0025, "x", true, false, null, {}] } },
    { text: '"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83C\\uDF31"', want: '"\\/\b\f\n\r\té🌱' },
    { text: '"\\ud83c\\udf31"', want: "🌱" },
    { text: '"\u2028\u007F"', want: "\u2028\u007F" },
    { text: "-0", want: -0 },
    { text: `${"[".repeat(100)}${"]".repeat(100)}`, want: JSON.parse(`${"[".repeat(100)}${"]".repeat(100)}`) },
  ])("reads and skips $text as JSON", ({ text, want }) => {
    expect(readAll(text)).toEqual(want);
    expect(() => skipAll(text)).not.toThrow();
    expect(() => skipSyntaxOf(text)).not.toThrow();
  });

  test("returns the source text of numbers", () =>
    expect(new JsonScanner(" 9007199254740993.0e-1 ").readNumber()).toBe("9007199254740993.0e-1"));

  test("rewinds to a mark", () => {
    const scanner = new JsonScanner('{"a":[1],"b":2}');
    scanner.openObject();
    const mark = scanner.mark();
    expect(scanner.firstKey()).toBe("a");
    scanner.skipValue();
    scanner.rewind(mark);
    expect(scanner.firstKey()).toBe("a");
    scanner.skipValue();
    expect(scanner.nextKey()).toBe("b");
    scanner.skipValue();
    expect(scanner.nextKey()).toBeUndefined();
    scanner.finish();
  });

  test.each([
    { text: '{"a" 1}', want: 'not valid JSON: expected ":", got "1" at character 6' },
    { text: '{"a":', want: "not valid JSON: expected a value, got the end of the text at character 6" },
    { text: '["order", "a\\nb\\x"]', want: "not valid JSON: unknown escape in a string at character 17" },
    { text: '"a\\u12', want: "not valid JSON: unknown escape in a string at character 4" },
    { text: '"a\\\\', want: "not valid JSON: unterminated string at character 5" },
  ])("reports the error in $text with its position", ({ text, want }) => expect(() => readAll(text)).toThrow(want));

  test("accepts and reads the same texts as JSON.parse", () => {
    const text = fc.oneof(
      fc.json({ depthSize: "medium" }),
      fc.tuple(fc.json(), fc.nat(), fc.string({ maxLength: 2 })).map(([json, at, noise]) => {
        const cut = at % (json.length + 1);
        return json.slice(0, cut) + noise + json.slice(cut + 1);
      }),
    );
    fc.assert(
      fc.property(text, (json) => {
        let want: unknown;
        try {
          want = JSON.parse(json);
        } catch {
          expect(() => readAll(json)).toThrow(/^not valid JSON/);
          return;
        }
        // JSON.parse also accepts a lone surrogate.
        if (!isUnicode(want)) expect(() => readAll(json)).toThrow(/surrogate/);
        else expect(readAll(json)).toEqual(want);
      }),
      { numRuns: numRunsOf(800) },
    );
  });
});
