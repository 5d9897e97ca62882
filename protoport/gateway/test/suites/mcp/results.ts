/** What a client gets from the server in `client-server.ts`. */
export interface Results {
  readonly tools: readonly string[];
  /** The structured result when the call has an int64 above 2^53. */
  readonly call: unknown;
  /** A failed call's text. */
  readonly error: string;
  /** A stream's structured result, and how many progress notifications there were. */
  readonly stream: unknown;
  readonly progress: number;
  /** The structured result for a message with every field type. */
  readonly types: unknown;
  readonly isRefused: boolean;
  readonly isCancelled: boolean;
}

/** A message with every field type, in JSON. */
// oxfmt-ignore
export const everyType: Readonly<Record<string, unknown>> = {
  fDouble: 1.5, fInt32: -7, fInt64: "9007199254740993", fUint64: "18446744073709551615", fBool: true, fString: "ä€😀",
  fBytes: "AAH/", fEnum: "COLOR_RED", maybeInt64: "0", ids: ["1", "-9223372036854775808"],
  nesteds: [{ text: "a", inner: { number: "2" } }], labels: { a: "b" }, nestedById: { "-7": { text: "c" } },
  counts: { true: 1 }, empty: {}, choiceNested: { text: "d" }, wInt64: "0", wBytes: "AA==",
  time: "2026-01-31T12:00:00.123456789Z", duration: "1.500s", mask: "fInt64", struct: { a: [null, 1, "b"] },
  value: null, list: [1, { b: true }], any: { "@type": "type.googleapis.com/kitchensink.v1.Nested", text: "e" },
};

/** The greenhouse's service name, as tool names contain it. */
export const greenhouse = "greenhouse_v1_GreenhouseService";
const rpcs = ["GetReading", "WaterBed", "WatchReadings"];

/** The expected results. */
export const expected: Results = {
  tools: [...rpcs.map((name) => `${greenhouse}_${name}`), "kitchensink_v1_KitchenSink_Create"],
  call: { bed: "9007199254740993", liters: 3 },
  error: "ABORTED: dry",
  stream: { messages: [1, 2, 3].map((degreesCelsius) => ({ sensor: "a", degreesCelsius })) },
  progress: 3,
  types: { rpc: "Create", sink: everyType },
  isRefused: true,
  isCancelled: true,
};
