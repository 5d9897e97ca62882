import type { DescFile, DescMessage, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { create, createRegistry, getExtension, hasExtension, setExtension, toBinary } from "@bufbuild/protobuf";
// oxfmt-ignore
import { type Any, anyPack, AnySchema, anyUnpack, EnumValueOptionsSchema, FieldOptionsSchema,
  file_google_protobuf_descriptor, MessageOptionsSchema, MethodOptionsSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
// oxfmt-ignore
import { Color, createTestGateway, descriptorSetOf, errorOf, file_kitchensink_v1_kitchen_sink, KitchenSink,
  NestedSchema, restrictedTo, type Sink, SinkSchema } from "@protoport/testing/proxy";
import { collect } from "@protoport/testing/process";
// oxfmt-ignore
import { codes, file_kitchensink_v1_legacy, label, type Legacy, LegacySchema, LegacySink, note, origin, Shade, tint
} from "../../../../../testing/src/gen/kitchensink/v1/legacy_pb.ts";
import { GetShelfRequestSchema } from "../../../../../testing/src/gen/kitchensink/v1/shelves_pb.ts";
import { HiddenParts } from "../../../../../gateway/src/protobuf/descriptors/index.ts";
import { createProxy, type ProxyGateway } from "../../../../src/create-proxy.ts";

// Message parts that google.api.visibility hides in the binary format: extensions, enum numbers, messages in Any.

/** Removes the REST rules, which name hidden fields. */
function withoutRules(file: DescFile): DescFile {
  for (const method of file.proto.service.flatMap((service) => service.method)) delete method.options;
  return file;
}

function restrictedLegacy(): DescFile {
  const proto = structuredClone(file_kitchensink_v1_legacy.proto);
  for (const field of [...proto.extension, ...proto.messageType.flatMap((message) => message.field)])
    if (["note", "number"].includes(field.name)) field.options = restrictedTo("INTERNAL", FieldOptionsSchema);
  for (const value of proto.enumType.flatMap((desc) => desc.value))
    if (value.name === "SHADE_DARK") value.options = restrictedTo("INTERNAL", EnumValueOptionsSchema);
  return withoutRules({ ...file_kitchensink_v1_legacy, proto });
}

function restrictedSink(): DescFile {
  const proto = structuredClone(file_kitchensink_v1_kitchen_sink.proto);
  for (const message of proto.messageType)
    if (message.name === "Nested") message.options = restrictedTo("INTERNAL", MessageOptionsSchema);
  for (const value of proto.enumType.flatMap((desc) => desc.value))
    if (value.name === "COLOR_RED") value.options = restrictedTo("INTERNAL", EnumValueOptionsSchema);
  return withoutRules({ ...file_kitchensink_v1_kitchen_sink, proto });
}

function legacyOf(name: string, depth = 2): Legacy {
  const legacy = create(LegacySchema, { name, number: 5, shade: Shade.DARK, shades: [Shade.LIGHT, Shade.DARK] });
  setExtension(legacy, note, "secret");
  setExtension(legacy, codes, [1n, 2n]);
  setExtension(legacy, label, "visible");
  setExtension(legacy, tint, Shade.DARK);
  if (depth === 0) return legacy;
  legacy.child = legacyOf("child", depth - 1);
  legacy.byName = { a: legacyOf("in a map", depth - 1) };
  legacy.choice = { case: "choiceLegacy", value: legacyOf("in a oneof", depth - 1) };
  setExtension(legacy, origin, legacyOf("extension", depth - 1));
  legacy.any = anyPack(LegacySchema, legacyOf("in any", depth - 1));
  return legacy;
}

/** The message from {@link legacyOf} without its hidden parts, in a form that can be compared. */
function visibleOf(name: string, depth = 2): object {
  const own = { name, number: 7, shade: Shade.LIGHT, shades: [Shade.LIGHT], codes: [1n, 2n], label: "visible" };
  if (depth === 0) return own;
  return {
    ...own,
    child: visibleOf("child", depth - 1),
    inMap: visibleOf("in a map", depth - 1),
    inOneof: visibleOf("in a oneof", depth - 1),
    origin: visibleOf("extension", depth - 1),
    any: visibleOf("in any", depth - 1),
  };
}

const registry = createRegistry(file_kitchensink_v1_legacy, file_kitchensink_v1_kitchen_sink);

function seen(legacy: Legacy): object {
  const unpacked = legacy.any && unpack(LegacySchema, legacy.any);
  const member = legacy.choice.case === "choiceLegacy" ? legacy.choice.value : undefined;
  // oxfmt-ignore
  return { name: legacy.name, number: legacy.number, shade: legacy.shade, shades: legacy.shades,
    codes: getExtension(legacy, codes), label: getExtension(legacy, label),
    ...(hasExtension(legacy, note) && { note: getExtension(legacy, note) }),
    ...(hasExtension(legacy, tint) && { tint: getExtension(legacy, tint) }),
    ...(legacy.child && { child: seen(legacy.child) }), ...(legacy.byName["a"] && { inMap: seen(legacy.byName["a"]) }),
    ...(member && { inOneof: seen(member) }),
    ...(hasExtension(legacy, origin) && { origin: seen(getExtension(legacy, origin)) }),
    ...(unpacked && { any: seen(unpacked) }) };
}

const unpack = <Desc extends typeof LegacySchema>(desc: Desc, any: Any): MessageShape<Desc> =>
  anyUnpack(any, desc) ?? expect.unreachable();

const sent: MessageInitShape<typeof SinkSchema> = {
  fString: "a",
  fEnum: Color.RED,
  maybeEnum: Color.RED,
  colors: [Color.RED, Color.UNSPECIFIED],
  palette: { a: Color.RED, b: Color.UNSPECIFIED },
  choice: { case: "choiceEnum", value: Color.RED },
  any: anyPack(NestedSchema, create(NestedSchema, { text: "secret" })),
};

/** Returns an error with three details: a hidden type, a type with hidden parts, and a type from another definition. */
const failure = (): ConnectError =>
  new ConnectError("failed", Code.Aborted, undefined, [
    { desc: NestedSchema, value: { text: "secret" } },
    { desc: LegacySchema, value: legacyOf("detail") },
    { desc: GetShelfRequestSchema, value: { name: "shelves/1" } },
  ]);

const proxies: ProxyGateway[] = [];
let baseUrl: string;
/** The URL of a proxy with an interceptor that reads no message. */
let interceptedUrl: string;
const received: Legacy[] = [];
const receivedSinks: Sink[] = [];
const upstream = createTestGateway({
  routes: (router) => {
    router.service(LegacySink, {
      keep: (legacy) => {
        if (legacy.name === "fail") throw failure();
        received.push(legacy);
        return legacyOf("answer");
      },
      async *keepAll(legacies) {
        for await (const legacy of legacies) {
          if (legacy.name === "fail") throw failure();
          received.push(legacy);
        }
        yield legacyOf("answer");
      },
    });
    router.service(KitchenSink, {
      create: (sink) => {
        receivedSinks.push(sink);
        return { sink: create(SinkSchema, sent) };
      },
    });
  },
  jsonOptions: { registry },
});

beforeAll(async () => {
  const { port } = await upstream.listen({ host: "127.0.0.1", port: 0 });
  const descriptors = descriptorSetOf(restrictedLegacy(), restrictedSink());
  const open = async (interceptors: Interceptor[]): Promise<string> => {
    const upstreams = [{ upstream: `http://127.0.0.1:${port}`, descriptors }];
    const proxy = await createProxy({ upstreams, visibility: { allow: [] }, interceptors });
    proxies.push(proxy);
    const address = await proxy.listen({ host: "127.0.0.1", port: 0 });
    return `http://127.0.0.1:${address.port}`;
  };
  baseUrl = await open([]);
  interceptedUrl = await open([(next) => next]);
});
afterAll(async () => {
  await Promise.all(proxies.map((proxy) => proxy.close()));
  await upstream.close();
});

const transports: readonly { readonly name: string; readonly open: () => Transport }[] = [
  { name: "gRPC", open: () => createGrpcTransport({ baseUrl }) },
  { name: "gRPC with an interceptor", open: () => createGrpcTransport({ baseUrl: interceptedUrl }) },
  { name: "Connect", open: () => createConnectTransport({ baseUrl, httpVersion: "2" }) },
];

describe.each(transports)("the proxy over $name", ({ open }) => {
  test("removes hidden extensions, fields and enum values at any depth", async () => {
    received.length = 0;
    const answer = await createClient(LegacySink, open()).keep(legacyOf("request"));
    expect([...received, answer].map(seen)).toEqual([visibleOf("request"), visibleOf("answer")]);
  });

  test("removes hidden parts from the messages of a stream", async () => {
    received.length = 0;
    const answers: Legacy[] = [];
    const requests = async function* (): AsyncGenerator<Legacy> {
      yield legacyOf("request", 1);
    };
    for await (const answer of createClient(LegacySink, open()).keepAll(requests())) answers.push(answer);
    expect([...received, ...answers].map(seen)).toEqual([visibleOf("request", 1), visibleOf("answer")]);
  });

  test("removes hidden enum values and empties an Any of a hidden type", async () => {
    receivedSinks.length = 0;
    const { sink } = await createClient(KitchenSink, open()).create(sent);
    for (const each of [receivedSinks[0], sink])
      expect(each).toMatchObject({
        fString: "a",
        fEnum: Color.UNSPECIFIED,
        colors: [Color.UNSPECIFIED],
        palette: { b: Color.UNSPECIFIED },
        choice: { case: undefined },
        any: { typeUrl: "", value: new Uint8Array() },
      });
    expect([receivedSinks[0], sink].map((each) => each && "maybeEnum" in each)).toEqual([false, false]);
  });

  // oxfmt-ignore
  test.each([
    "/kitchensink.v1.Legacy/", "type.googleapis.com/kitchensink.v1.Legacy/", "/kitchensink.v1.Legacy?",
    "/.kitchensink.v1.Legacy", "/kitchensink.v1%2ELegacy", "/", "",
  ])("empties an Any with the malformed type URL %j before forwarding", async (typeUrl) => {
    receivedSinks.length = 0;
    const value = toBinary(LegacySchema, legacyOf("request"));
    await createClient(KitchenSink, open()).create({ any: { typeUrl, value } });
    expect(receivedSinks).toMatchObject([{ any: { typeUrl: "", value: new Uint8Array() } }]);
  });

  test("removes only hidden values from a list of 500,000 enum values", async () => {
    received.length = 0;
    const shades = Array.from({ length: 500_000 }, (_, at) => (at % 2 === 0 ? Shade.LIGHT : Shade.DARK));
    await createClient(LegacySink, open()).keep(create(LegacySchema, { name: "request", shades }));
    expect(received.map((legacy) => legacy.shades.length)).toEqual([250_000]);
  });

  test("removes hidden parts and types from error details", async () => {
    const client = createClient(LegacySink, open());
    const fail = create(LegacySchema, { name: "fail" });
    const requests = async function* (): AsyncGenerator<Legacy> {
      yield fail;
    };
    const errors = [await errorOf(client.keep(fail)), await errorOf(collect(client.keepAll(requests())))];
    for (const error of errors) {
      expect([error.code, error.findDetails(NestedSchema)]).toEqual([Code.Aborted, []]);
      expect(error.findDetails(LegacySchema).map(seen)).toEqual([visibleOf("detail")]);
      expect(error.findDetails(GetShelfRequestSchema)).toMatchObject([{ name: "shelves/1" }]);
    }
  });

  const nestings: Readonly<Record<string, (inner: Legacy) => Legacy>> = {
    Any: (inner) => create(LegacySchema, { name: "outer", any: anyPack(LegacySchema, inner) }),
    extension: (inner) => {
      const outer = create(LegacySchema, { name: "outer" });
      setExtension(outer, origin, inner);
      return outer;
    },
  };

  test.each(Object.entries(nestings))(
    "removes messages that are nested too deeply in %s values",
    async (_name, nest) => {
      received.length = 0;
      let nested = create(LegacySchema, { name: "innermost" });
      for (let depth = 1; depth <= 16; depth += 1) nested = nest(nested);
      const client = createClient(LegacySink, open());
      await client.keep(nested);
      await client.keep(nest(nested));
      const texts = received.map((each) => String(Buffer.from(toBinary(LegacySchema, each))));
      expect(texts.map((text) => text.includes("innermost"))).toEqual([true, false]);
    },
  );
});

describe("HiddenParts.mayBeIn", () => {
  const { dependencies } = file_kitchensink_v1_legacy;
  const types = createRegistry(...registry, ...dependencies, file_google_protobuf_descriptor);
  const mayBeIn = (desc: DescMessage, restricted: string): boolean =>
    HiddenParts.of([{ types, restricted: new Set([restricted]) }], undefined)?.mayBeIn([desc]) === true;

  test.each<[want: boolean, name: string, desc: DescMessage, restricted: string]>([
    [true, "a restricted message", NestedSchema, "kitchensink.v1.Nested"],
    [true, "an Any", AnySchema, "a.Other"],
    [true, "a message with a restricted extension", MethodOptionsSchema, "google.api.HttpRule"],
    [true, "a message with a restricted enum", FieldOptionsSchema, "google.protobuf.FieldOptions.CType"],
    [false, "a message without restricted parts", NestedSchema, "kitchensink.v1.Color"],
  ])("returns %s if %s is the only type", (want, _name, desc, restricted) => {
    expect(mayBeIn(desc, restricted)).toBe(want);
  });
});
