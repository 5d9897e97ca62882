import { join } from "node:path";
import { createRegistry, type DescMessage, fromBinary, toBinary, toJsonString } from "@bufbuild/protobuf";
import type { BinaryWriter } from "@bufbuild/protobuf/wire";
import type { Interceptor } from "@connectrpc/connect";
import type { sendUnaryData, ServerUnaryCall, ServerWritableStream, ServiceDefinition } from "@grpc/grpc-js";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type AnyDefinition, findConverter, findEncode } from "../../../../src/calls/index.ts";
import { createResponseWriter } from "../../../../src/calls/write-response.ts";
import { generateTsProto, type TsProtoCode } from "../../../generate-ts-proto.ts";
import { includeDirs, loadGarden, startGarden, type TestGarden } from "../../../garden.ts";
import { callGarden } from "../../../grpc-js-client.ts";
import { readServices } from "../../../../src/grpc-js.ts";
import type { Envelope } from "../../../../../gateway/src/protocols/index.ts";

// Responses have the bytes of the definition's `responseSerialize`, with and without `messages`.

type Tree = { treeId: bigint; speciesName: string };
type Encode = (tree: Tree, writer?: BinaryWriter) => BinaryWriter;
interface Generated {
  readonly GardenService: ServiceDefinition;
  readonly Tree: { readonly encode: Encode; fromPartial(tree: Partial<Tree>): Tree };
  readonly Summary: unknown;
}

let code: TsProtoCode;
let generated: Generated;
beforeAll(async () => {
  code = generateTsProto(includeDirs, ["outputServices=grpc-js", "forceLong=bigint", "useDate=false"]);
  generated = await import(join(code.folder, "garden/v1/garden.ts"));
});
afterAll(() => code[Symbol.dispose]());
const [service] = readServices(loadGarden());
const tree = service && createRegistry(service.file).getMessage("garden.v1.Tree");

function getTree(): readonly [AnyDefinition, DescMessage] {
  const definition = generated.GardenService["getTree"];
  if (definition === undefined || tree === undefined) throw new TypeError("the garden lacks GetTree");
  return [definition, tree];
}

/** Returns functions that write a tree without and with `messages`. */
function writers(): readonly [(value: unknown) => unknown, (value: unknown) => unknown] {
  const [definition, desc] = getTree();
  const encode = findEncode(definition, desc, { ...generated });
  expect(encode).toBeDefined();
  const own = createResponseWriter(definition, undefined);
  const kept = createResponseWriter(definition, encode);
  return [bytesOf(own), bytesOf(kept)];
}

function bytesOf(write: (value: unknown) => Envelope): (value: unknown) => string {
  return (value) => Buffer.from(write(value).withPrefix).toString("hex");
}

test("a message has the same bytes after messages of any size", () => {
  const [own, kept] = writers();
  for (const length of [0, 1, 127, 128, 16_384, 70_000, 1, 3_000_000, 5]) {
    const value = generated.Tree.fromPartial({ treeId: BigInt(length), speciesName: "é".repeat(length) });
    expect(kept(value)).toBe(own(value));
    expect(kept(value)).toBe(own(value));
  }
});

test("a message has the same bytes after another could not be written", () => {
  const [own, kept] = writers();
  const oak = generated.Tree.fromPartial({ treeId: 1n, speciesName: "oak" });
  expect(() => kept({ ...oak, treeId: 2n ** 64n })).toThrow("too large");
  expect(() => own({ ...oak, treeId: 2n ** 64n })).toThrow("too large");
  expect(kept(oak)).toBe(own(oak));
});

test("a getter of a message may write another message", () => {
  const [own, kept] = writers();
  const oak = generated.Tree.fromPartial({ treeId: 1n, speciesName: "oak" });
  const outer = {
    ...oak,
    get speciesName(): unknown {
      return kept(oak);
    },
  };
  expect(kept(outer)).toBe(own(outer));
});

test.each([
  {
    name: "a type that changes a field",
    encode: (value: Tree, writer: BinaryWriter) => generated.Tree.encode({ ...value, treeId: 0n }, writer),
  },
  { name: "a type that does not use the writer", encode: (value: Tree) => generated.Tree.encode(value) },
])("messages is refused for $name when the service is added", ({ encode }) => {
  const [definition, desc] = getTree();
  expect(() => findEncode(definition, desc, { Tree: { encode } })).toThrow(
    "messages.Tree writes other bytes than the definition of /garden.v1.Garden/GetTree: pass the file with both",
  );
});

test("the definition writes a type that messages does not contain", () => {
  const [definition, desc] = getTree();
  expect(findEncode(definition, desc, { Summary: generated.Summary, Tree: undefined })).toBeUndefined();
});

const bigints = (_: string, value: unknown): unknown => (typeof value === "bigint" ? String(value) : value);

// The interceptor reads each message.
const reader: Interceptor = (next) => async (request) => {
  const response = await next(request);
  if (!response.stream) response.header.set("x-length", String(JSON.stringify(response.message, bigints).length));
  return response;
};

test.for([
  ["without interceptors", []],
  ["with an interceptor", [reader]],
] as const)("concurrent calls %s get the same responses with and without messages", async ([, interceptors]) => {
  const treeOf = (treeId: bigint): Tree =>
    generated.Tree.fromPartial({ treeId, speciesName: `oak ${String(treeId)}`.repeat(Number(treeId) * 500) });
  const handlers = {
    getTree: ({ request }: ServerUnaryCall<Tree, Tree>, callback: sendUnaryData<Tree>) =>
      callback(null, treeOf(request.treeId)),
    listTrees: (call: ServerWritableStream<unknown, Tree>) => {
      for (let treeId = 0n; treeId < 30n; treeId++) call.write(treeOf(treeId));
      call.end();
    },
  };
  const options = { descriptors: readServices(loadGarden()) };
  const gateway = { interceptors: [...interceptors] };
  const messages = { ...generated };
  await using own = await startGarden(handlers, options, gateway, generated.GardenService);
  await using kept = await startGarden(handlers, { ...options, messages }, gateway, generated.GardenService);
  const callThree = (garden: TestGarden) => Promise.all([0, 1, 40].map((id) => callBoth(garden, id)));
  const responses = await Promise.all([own, kept].map(callThree));
  expect(responses[1]).toEqual(responses[0]);
  expect(String(responses[0])).toContain('"speciesName":"oak 1oak 1');
});

async function callBoth({ address: { port } }: TestGarden, treeId: number): Promise<unknown> {
  const url = `http://127.0.0.1:${String(port)}/v1`;
  const response = await fetch(`${url}/beds/1/trees/${String(treeId)}`);
  const listed = await (await fetch(`${url}/trees`)).text();
  const trees = await callGarden(port, { method: "ListTrees" });
  const outcome = await callGarden(port, { method: "GetTree", requests: [{ treeId }] });
  return [response.headers.get("x-length"), await response.text(), listed, outcome, trees];
}

// One value in each list has the field's type. Others are what programs in JavaScript, or with a cast, may return.
// oxfmt-ignore
const values: Readonly<Record<string, readonly unknown[]>> = {
  treeId: [0n, 1n, -1n, 2n ** 63n - 1n, -(2n ** 63n), 2n ** 63n, 7, "7", undefined, null],
  speciesName: ["", "oak", "é😀", "\ud800", "a\udc00b", 5, undefined, null, Object("oak")],
  sownAt: [undefined, { seconds: 0n, nanos: 0 }, { seconds: -1n, nanos: 999_999_999 }, { seconds: 1, nanos: 0 }, new Date(0), null, {}],
  leavesByName: [{}, { a: { spotSizes: [], kind: 0 } },
    { "": { spotSizes: [1.5, NaN, Infinity], kind: 7 }, b: { spotSizes: [-0], kind: -1 } }, { a: undefined },
    JSON.parse('{"__proto__":{"spotSizes":[],"kind":1}}'), { 7: { spotSizes: [2], kind: 1 } },
    { "\ud800": { spotSizes: [], kind: 0 } }, [], undefined, new Map([["a", { spotSizes: [], kind: 0 }]])],
  kind: [0, 1, -1, 7, 2 ** 31, 1.5, -0, NaN, "OAK", undefined],
  heightCm: [undefined, 0, 5, -5, 2 ** 31 - 1, 2 ** 31, -0, 1.5, NaN, null, "5", true],
  photoBytes: [new Uint8Array(), new Uint8Array([1, 2]), Buffer.from([255]), [1], "AQ==", undefined],
  extra: [undefined, 1],
  nickname: [undefined, "", "oak", "\ud800", 5, null, { value: "oak" }],
  girth: [undefined, 0, 1.5, NaN, -0, "1", null],
  seedBank: [undefined, undefined, "", "kew", 5, null],
  cutting: [undefined, { spotSizes: [1], kind: 1 }, { spotSizes: [], kind: "OAK" }, null],
};

test("a converted object equals the message in its bytes", () => {
  const [definition, desc] = getTree();
  const convert = findConverter(definition, desc, findEncode(definition, desc, { ...generated }));
  if (convert === undefined) throw new TypeError("trees are not converted");
  let [converted, refused] = [0, 0];
  const names = Object.keys(values);
  let state = 1;
  const next = (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  const usual = [3, 3, 3, 3, 2, 5, 3, 2, 3, 4, 4, 2];
  for (let run = 0; run < 60_000; run++) {
    // Most values have the field's type, so that whole messages are converted.
    const value = Object.fromEntries(
      names.map((name, index) => {
        const options = values[name] ?? [];
        return [name, options[next(run % 3 === 0 ? options.length : (usual[index] ?? 1))]];
      }),
    );
    const message = convert(value);
    if (message === undefined) {
      refused++;
      continue;
    }
    converted++;
    const bytes = definition.responseSerialize(value);
    const read = fromBinary(desc, new Uint8Array(bytes));
    expect(Buffer.from(toBinary(desc, message)).equals(toBinary(desc, read))).toBe(true);
    expect(toJsonString(desc, message)).toBe(toJsonString(desc, read));
    if (run % 50 === 0) expect(message).toEqual(read);
  }
  expect(converted).toBeGreaterThan(10_000);
  expect(refused).toBeGreaterThan(1000);
});
