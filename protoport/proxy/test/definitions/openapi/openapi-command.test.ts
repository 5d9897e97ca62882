import { expect, test, afterAll, describe } from "vitest";
import { create, type DescFile } from "@bufbuild/protobuf";
import { FileOptionsSchema } from "@bufbuild/protobuf/wkt";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
// oxfmt-ignore
import { descriptorSetOf, file_library_v1_library, file_orders_v1_orders, OrderService, runProxyCommand
} from "@protoport/testing/proxy";
import { createTempFolder } from "@protoport/testing/process";
import { createGateway } from "../../../../gateway/src/index.ts";
import { readDescriptorSet } from "../../../../gateway/src/protobuf/index.ts";
import { createProxyDocs } from "../../../src/command/serving-parts.ts";

test("openapi reports an unknown format once, with a hint to --help", async () => {
  const errors = "protoport: --format must be json or yaml, got \"xml\"\nTry 'protoport openapi --help'.";
  const result = await runProxyCommand("openapi", "set.binpb", "--format", "xml");
  expect(result).toEqual({ exitCode: 2, printed: "", errors });
});

// grpc-gateway's option openapiv2_swagger, in documents that the command `openapi` writes and the proxy serves.

const folder = createTempFolder();
const { write } = folder;
afterAll(() => folder[Symbol.dispose]());
const info = { title: OrderService.typeName, version: "1.0.0" };
const key = { type: "apiKey", name: "x-key", in: "header" } as const;
const base = { info: { title: "Orders", version: "2", contact: { name: "Ada" } }, securitySchemes: { key } };
/** Encodes fields. Numbers become varints, and arrays become messages. */
type Fields = readonly (readonly [number: number, value: string | number | Fields])[];
function encode(fields: Fields): Uint8Array<ArrayBuffer> {
  const writer = new BinaryWriter();
  for (const [number, value] of fields) {
    if (typeof value === "number") writer.tag(number, WireType.Varint).int32(value);
    else if (typeof value === "string") writer.tag(number, WireType.LengthDelimited).string(value);
    else writer.tag(number, WireType.LengthDelimited).bytes(encode(value));
  }
  return writer.finish();
}

function swaggerIn(file: DescFile, fields: Fields): DescFile {
  const proto = structuredClone(file.proto);
  proto.options = create(FileOptionsSchema);
  const data = new BinaryWriter().bytes(encode(fields)).finish();
  proto.options.$unknown = [{ no: 1042, wireType: WireType.LengthDelimited, data }];
  return { ...file, proto };
}

const withSwagger = (name: string, fields: Fields): string =>
  write(name, descriptorSetOf(swaggerIn(file_orders_v1_orders, fields)));

// oxfmt-ignore
const swagger: Fields = [
  [2,
    [[1, "Orders"], [2, "All of them."], [3, "https://terms.example"], [4, [[1, "Ada"]]], [5, [[1, "MIT"]]], [6, "7"]]],
  [3, "orders.example"],
  [4, "/v1/"],
  [5, 1],
  [5, 2],
  [11,
    [[1, [[1, "basic"], [2, [[1, 1], [2, "A password."]]]]], [1, [[1, "key"], [2, [[1, 2], [3, "x-key"], [4, 2]]]]]]],
  [11,
    [[1,
      [[1, "oauth"], [2, [[1, 3], [5, 4], [6, "https://a.example"], [7, "https://t.example"],
        [8, [[1, [[1, "read"], [2, "Reads."]]]]]]]]]]],
  [12, [[1, [[1, "key"], [2, []]]], [1, [[1, "oauth"], [2, [[1, "read"]]]]]]],
  [12, [[1, [[1, "basic"]]]]],
];

describe("openapi with openapiv2_swagger", () => {
  test("describes the definition's info, servers and credentials", async () => {
    const { printed } = await runProxyCommand("openapi", withSwagger("swagger.binpb", swagger));
    const described = {
      title: "Orders",
      version: "7",
      description: "All of them.",
      termsOfService: "https://terms.example",
    };
    const urls = { authorizationUrl: "https://a.example", tokenUrl: "https://t.example" };
    const oauth = { type: "oauth2", flows: { authorizationCode: { ...urls, scopes: { read: "Reads." } } } };
    const basic = { type: "http", scheme: "basic", description: "A password." };
    expect(JSON.parse(printed)).toMatchObject({
      info: { ...described, contact: { name: "Ada" }, license: { name: "MIT" } },
      servers: [{ url: "http://orders.example/v1" }, { url: "https://orders.example/v1" }],
      security: [{ key: [], oauth: ["read"] }, { basic: [] }],
      components: { securitySchemes: { basic, key, oauth } },
    });
  });

  test("uses the info of the first file and the credentials of all", async () => {
    // oxfmt-ignore
    const files = [
      swaggerIn(file_orders_v1_orders, [[2, [[1, "Orders"]]], [11, [[1, [[1, "key"], [2, [[1, 2], [3, "x-key"], [4, 2]]]]]]]]),
      swaggerIn(file_library_v1_library, [[2, [[1, "Library"]]], [11, [[1, [[1, "other"], [2, [[1, 1]]]]]]]]),
    ];
    const { printed } = await runProxyCommand("openapi", write("several.binpb", descriptorSetOf(...files)));
    expect(JSON.parse(printed)).toMatchObject({
      info: { title: "Orders" },
      components: { securitySchemes: { key, other: { type: "http", scheme: "basic" } } },
    });
  });

  test("flags override the base file, which overrides the option", async () => {
    const set = withSwagger("swagger.binpb", swagger);
    const file = write("b.json", JSON.stringify({ ...base, servers: [{ url: "/base" }] }));
    const { printed } = await runProxyCommand("openapi", set, "--base", file, "--server", "/x");
    expect(JSON.parse(printed)).toMatchObject({
      info: { title: "Orders", version: "2", description: "All of them.", contact: { name: "Ada" } },
      servers: [{ url: "/x" }],
      security: [{ key: [] }],
    });
  });

  test.each<[name: string, fields: Fields, want: object]>([
    ["a base path without a host becomes the server URL", [[4, "/v1"]], { servers: [{ url: "/v1" }] }],
    ["a host without schemes becomes a URL without one", [[3, "a.example"]], { servers: [{ url: "//a.example" }] }],
    ["a security scheme without a type is ignored", [[11, [[1, [[1, "x"]]]]]], { security: [] }],
    ["a requirement of an unknown scheme is ignored", [[12, [[1, [[1, "x"]]]]]], { security: [] }],
    ["a malformed option is ignored", [[2, 1]], { info }],
  ])("%s", async (_name, fields, want) => {
    const { exitCode, printed } = await runProxyCommand("openapi", withSwagger("one.binpb", fields));
    expect([exitCode, JSON.parse(printed)]).toEqual([0, expect.objectContaining(want)]);
  });
});

describe("the proxy's /openapi.json with openapiv2_swagger", () => {
  const set = descriptorSetOf(swaggerIn(file_orders_v1_orders, swagger));
  const { services } = readDescriptorSet(set);

  async function getDocument(further: Parameters<typeof createProxyDocs>[1]): Promise<string> {
    const described = () => ({ services, rest: {} });
    const { endpoints } = createProxyDocs(described, further, () => undefined);
    const gateway = createGateway({ routes: () => undefined, endpoints });
    return await (await gateway.fetch(new Request("http://proxy.example/openapi.json"))).text();
  }

  test("equals the document that the openapi command writes with --server /", async () => {
    const { printed } = await runProxyCommand("openapi", write("proxied.binpb", set), "--server", "/");
    expect(await getDocument({})).toBe(printed);
    expect(JSON.parse(printed)).toMatchObject({ info: { title: "Orders" }, servers: [{ url: "/" }] });
  });

  test("has only the credentials that the proxy checks", async () => {
    const bearerAuth = { type: "http", scheme: "bearer" } as const;
    const document: unknown = JSON.parse(await getDocument({ securitySchemes: { bearerAuth } }));
    expect(document).toMatchObject({ info: { title: "Orders" }, security: [{ bearerAuth: [] }] });
    expect(document).toHaveProperty("components.securitySchemes", { bearerAuth });
  });
});
