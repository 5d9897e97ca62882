import { Readable } from "node:stream";
import { create, type DescService, fromBinary, getExtension, toBinary, toJson } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { type ConnectRouter, createClient, createRouterTransport } from "@connectrpc/connect";
import type { ServiceDefinition, UntypedServiceImplementation } from "@grpc/grpc-js";
import { loadFileDescriptorSetFromBuffer, loadFileDescriptorSetFromObject } from "@grpc/proto-loader";
import { describe, expect, onTestFinished, test } from "vitest";
import { createBearerAuth, requiredScopesOf, type TokenVerifier } from "../../../../auth/src/index.ts";
import { type GatewayOptions, visibleServices } from "../../../../gateway/src/index.ts";
import { createReflectionService, ServerReflection } from "../../../../gateway/src/reflection/index.ts";
import { openValidation } from "../../../../gateway/src/validation/index.ts";
import { readDescriptorSet } from "../../../../gateway/src/protobuf/descriptors/index.ts";
import { http } from "../../../../gateway/src/protobuf/gen/google/api/annotations_pb.ts";
import { createTestGateway, freePort, listenForTests } from "@protoport/testing";
import { addGrpcJsService, type HandlerDescriptors, readServices } from "../../../src/grpc-js.ts";
import { createGatewayStrategy } from "../../../src/nestjs.ts";
import { addNiceGrpcService } from "../../../src/nice-grpc.ts";
import { buildSet, type Files, loadFiles, loadService } from "../../load-files.ts";

// The rules of a shop, of which proto-loader keeps only the options of methods.

const shop = {
  "shop.proto": `package shop.v1;
    import "buf/validate/validate.proto";
    import "google/api/annotations.proto";
    import "google/api/visibility.proto";
    import "protoport/auth/v1/required_scopes.proto";
    message Item { string name = 1 [(buf.validate.field).string.max_len = 2]; }
    service Admin {
      option (google.api.api_visibility).restriction = "INTERNAL";
      rpc Get(Item) returns (Item) {
        option (google.api.http) = { get: "/admin/{name}" };
        option (protoport.auth.v1.required_scopes) = { scopes: "admin" };
      }
    }
    service Shop { rpc Get(Item) returns (Item) { option (google.api.http) = { get: "/items/{name}" }; } }`,
};
const definition = loadFiles(shop, "shop.proto");
const admin = loadService(shop, "shop.proto", "shop.v1.Admin");
const descriptors = buildSet(shop);

const handlers: UntypedServiceImplementation = {
  Get: (call: { readonly request: object }, callback: (error: null, item: object) => void) =>
    callback(null, call.request),
};
const niceHandlers = { get: (item: object) => item };

/** A class with the interface of Nest's ServerGrpc, which always loads definitions with proto-loader. */
class ServerGrpc {
  async bindEvents(): Promise<void> {
    (await this.createClient()).addService(admin, handlers);
  }
  async createClient(): Promise<{ addService(...service: [ServiceDefinition, object]): void }> {
    return { addService: () => undefined };
  }
  addHandler(): void {}
  getMessageHandler(): undefined {
    return undefined;
  }
  async start(): Promise<void> {}
  async close(): Promise<void> {}
}

type Options = Pick<GatewayOptions, "visibility" | "validation" | "admit">;
type Source = { readonly descriptors?: HandlerDescriptors };

async function serve(routes: (router: ConnectRouter) => void, options: Options): Promise<string> {
  const server = await listenForTests(createTestGateway({ ...options, routes }));
  onTestFinished(() => server[Symbol.asyncDispose]());
  return `http://127.0.0.1:${server.address.port}`;
}

const ways: Readonly<Record<string, (options: Options, source?: Source) => Promise<string>>> = {
  addGrpcJsService: (options, source) =>
    serve((router) => void addGrpcJsService(router, admin, handlers, source), options),
  addNiceGrpcService: (options, source) =>
    serve((router) => void addNiceGrpcService(router, admin, niceHandlers, source), options),
  createGatewayStrategy: async (gateway, source) => {
    const port = await freePort();
    const strategy = createGatewayStrategy(ServerGrpc, {}, { listen: { host: "127.0.0.1", port }, gateway, ...source });
    onTestFinished(() => strategy.close());
    await strategy.start();
    return `http://127.0.0.1:${port}`;
  },
};

const problem =
  "the definition of shop.v1.Admin lacks the rules of services, messages, fields and enums, because " +
  "@grpc/proto-loader drops them; set descriptors of addGrpcJsService, addNiceGrpcService or createGatewayStrategy";

describe.each(Object.entries(ways))("%s", (_, start) => {
  test.each(["visibility", "validation"])("refuses the option %s without descriptors", async (option) => {
    const options = option === "visibility" ? { visibility: { allow: [] } } : { validation: await openValidation() };
    await expect(start(options)).rejects.toMatchObject({
      code: "ERR_DESCRIPTORS",
      message: `option "${option}": ${problem}`,
    });
  });

  test("applies visibility and validation rules with descriptors", async () => {
    const validation = await openValidation();
    const visible = await start({ validation, visibility: { allow: ["INTERNAL"] } }, { descriptors });
    const hidden = await start({ validation, visibility: { allow: [] } }, { descriptors });
    expect(await Promise.all(["/admin/a", "/admin/abc"].map((path) => statusOf(visible + path)))).toEqual([200, 400]);
    expect(await statusOf(`${hidden}/admin/a`)).toBe(404);
  });

  test("requires the scopes of readServices for the other service too", async () => {
    const { admit } = createBearerAuth(verifier, { realm: "r", services: readServices(definition) });
    const url = `${await start({ admit })}/admin/a`;
    const statuses = [await statusOf(url), await statusOf(url, "nothing"), await statusOf(url, "admin")];
    expect(statuses).toEqual([401, 403, 200]);
  });
});

test("readServices keeps the options of services from two loads of one package", () => {
  const others = { "shop.proto": shop["shop.proto"].replace("service Admin", "service Staff") };
  const services = readServices({ ...definition, ...loadFiles(others, "shop.proto") });
  const scopes = services.map(({ typeName, methods }) => [typeName, ...methods.map(requiredScopesOf)]);
  expect(scopes.flat()).toEqual(["shop.v1.Admin", ["admin"], "shop.v1.Shop", undefined, "shop.v1.Staff", ["admin"]]);
});

/** A token's text is its scope. */
const verifier: TokenVerifier = {
  verify: ({ text }) => ({ kind: "principal", subject: "ada", issuer: undefined, scopes: new Set([text]) }),
};

const statusOf = async (url: string, token?: string): Promise<number> =>
  (await fetch(url, { headers: token === undefined ? {} : { authorization: `Bearer ${token}` } })).status;

test("router.service refuses visibility and validation for services from readServices", async () => {
  const routes = (router: ConnectRouter): void => {
    for (const service of readServices(admin)) router.service(service, {});
  };
  for (const options of [{ visibility: { allow: [] } }, { validation: await openValidation() }])
    await expect(serve(routes, options)).rejects.toMatchObject({ code: "ERR_DESCRIPTORS" });
});

test("visibleServices refuses services from readServices next to complete services", () => {
  const complete = readDescriptorSet(descriptors).services;
  expect(visibleServices(complete, { allow: [] }).map(({ typeName }) => typeName)).toEqual(["shop.v1.Shop"]);
  expect(() => visibleServices([...complete, ...readServices(admin)], { allow: [] })).toThrow(
    `option "visibility": ${problem}`,
  );
});

function shopOf(loaded: object): ServiceDefinition {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types of proto-loader allow messages here.
  return Reflect.get(loaded, "shop.v1.Shop") as ServiceDefinition;
}

describe("a definition from a descriptor set", () => {
  const files = {
    "shop.proto": `package shop.v1; import "google/api/annotations.proto"; import "google/api/httpbody.proto";
      message Item { string name = 1; } service Shop {
        rpc Get(Item) returns (Item) { option (google.api.http) = { get: "/items/{name}" }; }
        rpc Load(Item) returns (google.api.HttpBody) { option (google.api.http) = { get: "/files/{name}" }; }
      }`,
  };
  const set = buildSet(files);
  const dropped =
    /@grpc\/proto-loader drops the options of the descriptor set with [\w/.]+, such as HTTP rules: set descriptors to the descriptor set/;

  test.each([
    { name: "loadFileDescriptorSetFromBuffer", load: () => loadFileDescriptorSetFromBuffer(set) },
    {
      name: "loadFileDescriptorSetFromObject",
      load: () =>
        loadFileDescriptorSetFromObject(toJson(FileDescriptorSetSchema, fromBinary(FileDescriptorSetSchema, set))),
    },
  ])("$name needs descriptors", async ({ load }) => {
    const options = {};
    const refused = serve((router) => void addGrpcJsService(router, shopOf(load()), handlers), options);
    await expect(refused).rejects.toMatchObject({ code: "ERR_DESCRIPTORS", message: expect.stringMatching(dropped) });
    expect(() => readServices({ ...loadFiles(shop, "shop.proto"), ...load() })).toThrow(dropped);
    const routes = (router: ConnectRouter) => addGrpcJsService(router, shopOf(load()), handlers, { descriptors: set });
    const url = await serve(routes, options);
    expect(await statusOf(`${url}/items/a`)).toBe(200);
  });

  // protoc writes a set without imports, and protobufjs names a file that it has read in this way.
  test.each(["idempotency_level = NO_SIDE_EFFECTS", "deprecated = true", "deprecated = false"])(
    "of one file named after its package needs descriptors for an RPC with %s",
    (option) => {
      const text = textOf(
        `option ${option}; option (protoport.auth.v1.required_scopes) = { scopes: "a" };`,
        "shop",
      ).replace('import "rules.proto";', "");
      const { file } = fromBinary(FileDescriptorSetSchema, buildSet({ "shop.proto": text }));
      const own = create(FileDescriptorSetSchema, { file: file.filter(({ name }) => name === "shop.proto") });
      const loaded = loadFileDescriptorSetFromBuffer(Buffer.from(toBinary(FileDescriptorSetSchema, own)));
      expect(() => readServices(loaded)).toThrow(
        "the definition lacks the options of /shop.Shop/Get; update @grpc/proto-loader, or set descriptors",
      );
    },
  );

  test("is not mistaken for a definition of loadSync with google.api.HttpBody", async () => {
    const service = shopOf(loadFiles(files, "shop.proto"));
    const url = await serve((router) => void addGrpcJsService(router, service, handlers), {});
    expect(await statusOf(`${url}/items/a`)).toBe(200);
  });
});

test("reflection publishes the HTTP rules of two services that were read separately", async () => {
  const items = loadService(shop, "shop.proto", "shop.v1.Shop");
  const services = [...readServices(admin), ...readServices(items)];
  const transport = createRouterTransport((router) =>
    router.service(ServerReflection, createReflectionService(services)),
  );
  const requests = services.map(({ file }) => ({
    messageRequest: { case: "fileByFilename" as const, value: file.proto.name },
  }));
  const responses = createClient(ServerReflection, transport).serverReflectionInfo(Readable.from(requests));
  const found: unknown[] = [];
  for await (const { messageResponse } of responses) {
    const [bytes] = messageResponse.case === "fileDescriptorResponse" ? messageResponse.value.fileDescriptorProto : [];
    for (const { name, method } of fromBinary(FileDescriptorProtoSchema, bytes ?? new Uint8Array()).service)
      found.push([name, ...method.map(({ options }) => options && getExtension(options, http).pattern.value)]);
  }
  expect(found.map(String)).toEqual(["Admin,/admin/{name}", "Shop,/items/{name}"]);
});

const rules = `package acme.rules; import "google/protobuf/descriptor.proto"; import "google/protobuf/any.proto";
  extend google.protobuf.MethodOptions {
    string role = 50001; Level level = 50002; bool open = 50003; Rule rule = 50004; google.protobuf.Any any = 50007;
  }
  enum Level { NONE = 0; HIGH = 2; }
  message Rule { map<string, int32> max = 1; repeated Rule all = 2; Level least_level = 3; }
  message Nested { extend google.protobuf.MethodOptions { string inner = 50006; } }`;

function textOf(options: string, scope: string): string {
  const imports = ["google/api/annotations", "protoport/auth/v1/required_scopes", "rules"];
  return `package ${scope}; ${imports.map((name) => `import "${name}.proto";`).join(" ")}
    message Item { string name = 1; } service Shop { rpc Get(Item) returns (Item) { ${options} } }`;
}

function readOptions(services: readonly DescService[], typeName: string): unknown {
  const method = services.find((service) => service.typeName === typeName)?.methods[0];
  const unknown = method?.proto.options?.$unknown ?? [];
  const sorted = unknown.toSorted((a, b) => a.no - b.no).map(({ no, data }) => [no, Buffer.from(data).toString("hex")]);
  return { sorted, scopes: method && requiredScopesOf(method) };
}

describe("readServices restores", () => {
  const restored = [
    { name: "scopes", options: 'option (protoport.auth.v1.required_scopes) = { scopes: "a" scopes: "b" };' },
    { name: "a list of scopes", options: 'option (protoport.auth.v1.required_scopes) = { scopes: ["a", "b"] };' },
    { name: "empty scopes", options: "option (protoport.auth.v1.required_scopes) = {};" },
    { name: "a field of an option", options: 'option (protoport.auth.v1.required_scopes).scopes = "a";' },
    { name: "an absolute name", options: 'option (.protoport.auth.v1.required_scopes).scopes = "a";' },
    { name: "a relative name", options: 'option (auth.v1.required_scopes).scopes = "a";' },
    { name: "a string", options: 'option (acme.rules.role) = "admin";' },
    { name: "an enum value", options: "option (acme.rules.level) = HIGH;" },
    { name: "false", options: "option (acme.rules.open) = false; option deprecated = true;" },
    {
      name: "maps, lists and messages",
      options: 'option (acme.rules.rule) = { max { key: "a" value: 2 } all { least_level: HIGH } all {} };',
    },
    { name: "an extension declared in a message", options: 'option (acme.rules.Nested.inner) = "x";' },
    { name: "an HTTP rule with an absolute name", options: 'option (.google.api.http) = { get: "/items/{name}" };' },
  ].map(({ name, options }, at) => ({ name, file: `row${at}.proto`, scope: `protoport.row${at}`, options }));
  const texts = restored.map(({ file, scope, options }) => [file, textOf(options, scope)]);
  const files: Files = Object.fromEntries([["rules.proto", rules], ...texts]);
  const complete = readDescriptorSet(buildSet(files)).services;

  test.each(restored)("$name as buf does", ({ file, scope }) => {
    for (const keepCase of [false, true]) {
      const services = readServices(loadFiles(files, file, { keepCase }));
      expect(readOptions(services, `${scope}.Shop`)).toEqual(readOptions(complete, `${scope}.Shop`));
    }
  });
});

test.each(
  // oxfmt-ignore
  [
    { name: "an option that no file declares", options: 'option (acme.role) = "admin";',
      error: "no file declares the option (acme.role) of /shop.v1.Shop/Get; import its file, or set descriptors" },
    { name: "scopes that no file declares", options: 'option (other.required_scopes) = { scopes: "admin" };',
      error: "no file declares the option (other.required_scopes) of /shop.v1.Shop/Get" },
    { name: "a value that JSON does not have", options: 'option (acme.rules.any) = { type_url: "a" };',
      error: "the option (acme.rules.any) of /shop.v1.Shop/Get is not readable" },
  ],
)("readServices refuses $name in a definition", ({ options, error }) => {
  const files = { "rules.proto": rules, "shop.proto": textOf(options, "shop.v1") };
  const read = (): unknown => readServices(loadFiles(files, "shop.proto"));
  expect(read).toThrow(expect.objectContaining({ code: "ERR_DESCRIPTORS", message: expect.stringContaining(error) }));
});

test.each([
  { name: "an old proto-loader version", options: undefined },
  { name: "JSON without parsed options", options: { deprecated: false, uninterpreted_option: [] } },
])("readServices refuses a definition of $name without method options", ({ options }) => {
  expect(() => readServices({ Get: { ...admin["Get"], options } })).toThrow(
    "the definition lacks the options of /shop.v1.Admin/Get; update @grpc/proto-loader, or set descriptors",
  );
});
