/**
 * A text that is valid for a kind, and its ProtoJSON value, which a backend receives. The default value is `undefined`.
 */
export interface Valid {
  /** The text's name in case ids. */
  readonly name: string;
  readonly text: string;
  readonly json: number | string | boolean | undefined;
}

/** A text that is invalid for a kind. */
export type Invalid = { readonly name: string; readonly text: string };

/**
 * A text that the standard neither allows nor forbids in URLs, and the JSON value of the text if a server allows it.
 */
export interface Open extends Invalid {
  readonly json: number | string | boolean;
}

/** A scalar kind, with texts for its values in URLs. */
export interface Kind {
  readonly name: string;
  readonly valid: readonly Valid[];
  readonly invalid: readonly Invalid[];
  readonly open: readonly Open[];
}

type Range = { readonly min: bigint; readonly max: bigint };

const ranges: Readonly<Record<string, Range>> = {
  int32: { min: -(2n ** 31n), max: 2n ** 31n - 1n },
  int64: { min: -(2n ** 63n), max: 2n ** 63n - 1n },
  uint32: { min: 0n, max: 2n ** 32n - 1n },
  uint64: { min: 0n, max: 2n ** 64n - 1n },
};

const integers: readonly (readonly [kind: string, range: string])[] = [
  ["int32", "int32"],
  ["int64", "int64"],
  ["uint32", "uint32"],
  ["uint64", "uint64"],
  ["sint32", "int32"],
  ["sint64", "int64"],
  ["fixed32", "uint32"],
  ["fixed64", "uint64"],
  ["sfixed32", "int32"],
  ["sfixed64", "int64"],
];

const notIntegers: readonly Invalid[] = [
  { name: "letters", text: "abc" },
  { name: "fraction", text: "1.5" },
  { name: "two-signs", text: "--1" },
  { name: "sign-alone", text: "-" },
  { name: "true", text: "true" },
  { name: "trailing-letter", text: "7x" },
  { name: "comma", text: "1,000" },
];

/** Returns whether ProtoJSON writes a kind as a string. */
export const is64 = (kind: string): boolean => kind.endsWith("64");

function integer([name, rangeName]: readonly [string, string]): Kind {
  const { min, max } = ranges[rangeName] ?? { min: 0n, max: 0n };
  const toJson = (value: bigint): number | string => (is64(name) ? String(value) : Number(value));
  const values: readonly (readonly [name: string, value: bigint])[] = [
    ["zero", 0n],
    ["seven", 7n],
    ["max", max],
    ...(min < 0n
      ? ([
          ["min", min],
          ["minus-one", -1n],
        ] as const)
      : []),
    ...(is64(name) ? ([["above-2-53", 2n ** 53n + 1n]] as const) : []),
  ];
  return {
    name,
    valid: values.map(([each, value]) => ({
      name: each,
      text: String(value),
      json: value === 0n ? undefined : toJson(value),
    })),
    invalid: [
      { name: "above-max", text: String(max + 1n) },
      { name: "below-min", text: String(min - 1n) },
      { name: "far-above-max", text: "99999999999999999999999" },
      ...notIntegers,
    ],
    open: [
      { name: "leading-zeros", text: "007", json: toJson(7n) },
      { name: "leading-zero-of-ten", text: "010", json: toJson(10n) },
      { name: "plus-sign", text: "+7", json: toJson(7n) },
      { name: "zero-fraction", text: "7.0", json: toJson(7n) },
      { name: "exponent", text: "1e2", json: toJson(100n) },
    ],
  };
}

function float(name: string): Kind {
  // oxfmt-ignore
  return { name,
    valid: [{ name: "zero", text: "0", json: undefined }, { name: "seven", text: "7", json: 7 },
      { name: "fraction", text: "1.5", json: 1.5 }, { name: "negative", text: "-2.25", json: -2.25 },
      { name: "exponent", text: "1.5e3", json: 1500 }, { name: "negative-exponent", text: "25e-2", json: 0.25 }],
    invalid: [{ name: "letters", text: "abc" }, { name: "comma", text: "1,5" }, { name: "two-points", text: "1.2.3" },
      { name: "exponent-alone", text: "1e" }, { name: "true", text: "true" }],
    open: [],
  };
}

/** All scalar kinds except string and bytes, whose values need no conversion except escapes. */
// oxfmt-ignore
export const kinds: readonly Kind[] = [
  ...integers.map(integer),
  float("double"),
  float("float"),
  { name: "bool",
    valid: [{ name: "true", text: "true", json: true }, { name: "false", text: "false", json: undefined }],
    invalid: [{ name: "letters", text: "abc" }, { name: "two", text: "2" }],
    open: [{ name: "one", text: "1", json: true }, { name: "capitals", text: "TRUE", json: true },
      { name: "letter", text: "t", json: true }, { name: "yes", text: "yes", json: true }] },
  { name: "enum", valid: [{ name: "first", text: "COLOR_UNSPECIFIED", json: undefined },
      { name: "name", text: "COLOR_RED", json: "COLOR_RED" },
      { name: "last", text: "COLOR_NEGATIVE", json: "COLOR_NEGATIVE" }],
    invalid: [{ name: "unknown-name", text: "COLOR_BLUE" }, { name: "fraction", text: "1.5" },
      { name: "above-int32", text: "2147483648" }],
    open: [{ name: "number", text: "2", json: "COLOR_GREEN" }, { name: "unknown-number", text: "17", json: 17 },
      { name: "negative-number", text: "-1", json: "COLOR_NEGATIVE" },
      { name: "small-letters", text: "color_red", json: "COLOR_RED" },
      { name: "short-name", text: "RED", json: "COLOR_RED" }] },
];
