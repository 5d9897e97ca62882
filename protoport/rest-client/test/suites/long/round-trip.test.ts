import { create, equals, isMessage, toBinary } from "@bufbuild/protobuf";
import type { DescMessage, DescMethodUnary, Message } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { createRestTransport } from "../../../src/index.ts";
import { KitchenSink, NestedSchema, SinkSchema } from "../../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { LegacySink } from "../../../../testing/src/gen/kitchensink/v1/legacy_pb.ts";
import {
  GetShelfRequestSchema,
  Shelves,
  UpdateShelfRequestSchema,
} from "../../../../testing/src/gen/kitchensink/v1/shelves_pb.ts";
import { Dice, kitchenSinkRegistry, numRunsOf, shared, startKitchenSink } from "@protoport/testing";
import { rollMessage } from "../../../../testing/src/gateway/random-message.ts";

// The transport is the gateway's inverse. A message arrives unchanged at the RPC that was called, or is not sent.

const gateway = shared(() => startKitchenSink());

const pathTexts = (
  "a only me me/y/z a/b shelves/1/books/2 shelves/1/books shelves/../books/2 trees trees/x trees//x trees/x/ /a a:peek " +
  "a:close x/:list x:list . .. a/./b %2F %2e%2e a%2Fb %25 é 🌱 + & = ; # ? \\ * ** {id} 'x' ~ a:b:c 2024-01-02T03:04:05Z"
).split(" ");

const odd = ["", "a b", "\ud800", "a\udfff", "a\u0000b", "\n"];

/** Removes what JSON cannot express: -0, which JSON.stringify does not write, and NullValue values other than null. */
function withoutLosses<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return value;
  if ("case" in value && value.case === "choiceNull") Reflect.set(value, "value", 0);
  for (const [key, inner] of Object.entries(value)) {
    if (Object.is(inner, -0) || (key === "nullValue" && typeof inner === "number")) Reflect.set(value, key, 0);
    else withoutLosses(inner);
  }
  // The longest duration must not have nanoseconds, which the gateway would refuse.
  if ("$typeName" in value && value.$typeName === "google.protobuf.Duration") Reflect.set(value, "nanos", 0);
  return value;
}

function rollSink(dice: Dice): Message {
  const rolled = withoutLosses(rollMessage(dice, SinkSchema, 2));
  const kept = Array.from({ length: dice.roll(4) }, () => dice.oneOf(SinkSchema.fields).localName);
  const groups = SinkSchema.oneofs.map((oneof) => oneof.localName);
  const message = create(SinkSchema);
  for (const name of [...kept, ...(dice.roll(3) === 0 ? groups : [])]) {
    if (name in rolled) Reflect.set(message, name, Reflect.get(rolled, name));
  }
  const text = (): string => dice.oneOf(dice.roll(6) === 0 ? odd : pathTexts);
  if (dice.roll(2) === 0) message.fString = text();
  if (dice.roll(3) === 0) message.nested = create(NestedSchema, { text: text() });
  if (dice.roll(3) === 0) message.fInt64 = dice.oneOf([1n, -1n, 2n ** 63n - 1n, -(2n ** 63n)]);
  return message;
}

/** Changes a message so that it is rarely refused. Its strings are UTF-8, and its enums and masks have known names. */
function tame(value: object): void {
  for (const [key, inner] of Object.entries(value)) {
    if (!key.isWellFormed()) Reflect.deleteProperty(value, key);
    else if (key === "shade" || key === "tint") Reflect.set(value, key, 1);
    else if (key === "shades") Reflect.set(value, key, [1, 2]);
    else if (key === "paths") Reflect.set(value, key, ["id", "display_name"]);
    else if (typeof inner === "string") Reflect.set(value, key, inner.toWellFormed());
    else if (typeof inner === "object" && inner !== null && !(inner instanceof Uint8Array)) tame(inner);
  }
  if ("$typeName" in value && value.$typeName === "google.protobuf.Any") Object.assign(value, create(AnySchema));
}

function rollAny(dice: Dice, desc: DescMessage): Message {
  const message = withoutLosses(rollMessage(dice, desc, 2));
  if (dice.roll(4) > 0) tame(message);
  const name = `shelves/${dice.oneOf(pathTexts)}`;
  if (isMessage(message, GetShelfRequestSchema)) message.name = name;
  if (isMessage(message, UpdateShelfRequestSchema) && message.shelf !== undefined) message.shelf.name = name;
  return message;
}

/** Calls an RPC with a message, and returns "sent" if it arrived unchanged, or "refused" if nothing was sent. */
async function outcomeOf(method: DescMethodUnary, message: Message): Promise<"sent" | "refused"> {
  const { port } = gateway.address;
  let requests = 0;
  const transport = createRestTransport({
    baseUrl: `http://127.0.0.1:${port}`,
    registry: kitchenSinkRegistry,
    fetch: (url, init) => {
      requests += 1;
      return fetch(url, init);
    },
  });
  try {
    const response = await transport.unary(method, undefined, undefined, undefined, message);
    const echoed: unknown = "sink" in response.message ? response.message.sink : response.message;
    if ("rpc" in response.message) expect(response.message.rpc).toBe(method.name);
    expect(isMessage(echoed, method.input) && same(method.input, echoed, message)).toBe(true);
    return "sent";
  } catch (error) {
    if (!(error instanceof ConnectError)) throw error;
    // JSON can express numbers that a closed enum does not have. The gateway refuses them.
    if (error.rawMessage.endsWith("is not a value of enum kitchensink.v1.Shade")) return "refused";
    expect([requests, error.code, error.message]).toEqual([0, Code.InvalidArgument, error.message]);
    return "refused";
  }
}

// Compared by their bytes, because NaN equals nothing, and -0 equals 0.
const same = (desc: DescMessage, echoed: Message, message: Message): boolean =>
  equals(desc, echoed, message) || Buffer.compare(toBinary(desc, echoed), toBinary(desc, message)) === 0;

const unary = [...Object.values(KitchenSink.method), LegacySink.method.keep, ...Object.values(Shelves.method)];
const echoing = unary
  .filter(({ parent }) => parent === KitchenSink)
  .filter(({ name }) => !["Fail", "Remove", "Unbound", "ResponseNested"].includes(name));

async function expectRoundTrips(method: DescMethodUnary, roll: (dice: Dice) => Message): Promise<void> {
  const outcomes = { sent: 0, refused: 0 };
  const property = fc.asyncProperty(fc.integer(), async (seed) => {
    outcomes[await outcomeOf(method, roll(new Dice(seed)))] += 1;
  });
  await fc.assert(property, { numRuns: numRunsOf(60) });
  expect(outcomes.sent).toBeGreaterThan(0);
}

test.each(echoing)("$name: a random KitchenSink message arrives unchanged or is refused", (method) =>
  expectRoundTrips(method, rollSink),
);

test.each(unary.filter(({ name }) => ["Create", "Keep", "GetShelf", "UpdateShelf"].includes(name)))(
  "$name: a random message of any type arrives unchanged or is refused",
  (method) => expectRoundTrips(method, (dice) => rollAny(dice, method.input)),
);
