import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createHealthService, Health, Readiness } from "../../../gateway/src/health/index.ts";
import { createGateway, type Gateway } from "../../../gateway/src/index.ts";
import { createIssuedCertificate } from "@protoport/testing/http";
// oxfmt-ignore
import { createSigningKey, type IdentityProvider, projectFolder, startIdentityProvider, startNode
} from "@protoport/testing/process";
import { OrderService } from "../../../testing/src/gen/orders/v1/orders_pb.ts";
import { blocksRunBy, type PageBlock } from "../../support/docs/page-blocks.ts";
import { generateGreetCode, writeOrderCode } from "../../support/package/greet-code.ts";

// Runs TypeScript blocks as programs in separate processes, after the code that their text assumes and before code that
// shows their effect. A TLS server of orders, and an identity provider, replace the hosts orders.example and
// id.example. A free port replaces the documented one. A gateway that a block creates is assigned to a variable.

/** The code around a block, and its expected output. */
interface Program {
  readonly page: string;
  readonly start: string;
  readonly before?: string;
  readonly after?: string;
  readonly prints: readonly string[];
}

const token = 'const token = process.env["TOKEN"] ?? "";';
const deleteOverTransport = `import { createClient } from "@connectrpc/connect";
import { OrderService } from "./gen/orders/v1/orders_pb.ts";
await createClient(OrderService, transport).deleteOrder({ id: 42n });
console.log("deleted");`;
const routes = 'import { routes } from "./routes.ts";';
const listen = 'const { port } = await gateway.listen({ host: "127.0.0.1", port: 0 });';

/** Returns code that calls a gateway in its process, prints the response and closes the gateway. */
const callGateway = (path: string, method = "GET", print = "response.status, await response.text()"): string =>
  [
    `const response = await fetch(\`http://127.0.0.1:\${port}${path}\`, { method: "${method}" });`,
    `console.log(${print});`,
    "await gateway.close();",
  ].join("\n");

const typeOfResponse = 'response.status, response.headers.get("content-type")';
const summaryOfDelete = '(await response.json()).paths["/orders/{id}"].delete.summary';

// oxfmt-ignore
const programs: readonly Program[] = [
  {
    page: "protoport/docs/how-to/scopes.md",
    start: "import { createBearerAuth, createResourceMetadata, requiredScopesOf }",
    before: `import { createGateway } from "@protoport/gateway";
const verifier = { verify: () => { throw new Error("no call has a token"); } };`,
    after: `const greet = ({ name }) => ({ text: \`Hello \${name}\` });
const routes = (router) => router.service(GreetService, { greet });
const gateway = createGateway({ routes, admit: auth.admit });
${listen}
${callGateway("/greetings/Ada", "GET", 'response.status, response.headers.get("www-authenticate")')}`,
    prints: [
      '401 Bearer realm="orders", resource_metadata="https://orders.example/.well-known/oauth-protected-resource"',
    ],
  },
  { page: "protoport/docs/how-to/openapi.md", start: "import { createGateway, visibleServices }",
    after: `${listen}\nconsole.log(Object.keys(document.paths));\n${callGateway("/greetings/Ada")}`,
    prints: ['[ \'/greetings/{name}\' ]\n200 {"text":"Hello Ada"}'] },
  { page: "protoport/docs/how-to/clients.md",
    start: 'import { createClient, type Interceptor } from "@connectrpc/connect"', before: token,
    after: 'console.log("deleted");', prints: ["deleted"] },
  { page: "protoport/docs/how-to/clients.md", start: "import { MethodOptions_IdempotencyLevel as Level }",
    before: token, after: deleteOverTransport, prints: ["deleted"] },
  { page: "protoport/docs/how-to/clients.md", start: "import { createGrpcTransport, createUpstream }", before: token,
    after: deleteOverTransport, prints: ["deleted"] },
  { page: "protoport/docs/how-to/migration.md",
    start: 'const gateway = createGateway({\n  routes,\n  rest: { profile: "grpc-gateway"',
    before: `import { createGateway } from "@protoport/gateway";\n${routes}`,
    after: `${listen}\n${callGateway("/orders/7?x=1&id=8", "DELETE")}`, prints: ["the handler has 7\n200 {}"] },
  { page: "protoport/docs/how-to/migration.md",
    start: 'const gateway = createGateway({\n  routes,\n  rest: { profile: "envoy"',
    before: `import { createGateway } from "@protoport/gateway";\n${routes}`,
    after: `${listen}\n${callGateway("/orders/7?x=1&id=8", "DELETE")}`, prints: ["the handler has 7\n200 {}"] },
  { page: "protoport/docs/how-to/validation.md", start: "import { createGateway }", before: routes,
    after: `${listen}\n${callGateway("/orders/7", "DELETE")}`, prints: ["the handler has 7\n200 {}"] },
  {
    page: "protoport/docs/how-to/gateway.md",
    start: 'import { Code, ConnectError } from "@connectrpc/connect"',
    before: `import { createGateway } from "@protoport/gateway";
${routes}
const isSigned = (event: Uint8Array, signature: string | null): boolean => signature === String(event.byteLength);`,
    after: `const gateway = createGateway({ routes, endpoints: [hook] });
${listen}
const sent = { method: "POST", headers: { "x-signature": "3" }, body: "abc" };
console.log((await fetch(\`http://127.0.0.1:\${port}/hooks/payment\`, sent)).status);
${callGateway("/hooks/payment", "POST", "response.status")}`,
    prints: ["204\n403"],
  },
  { page: "protoport/docs/how-to/gateway.md", start: "import { createGateway }",
    after: callGateway("/orders/7", "DELETE"), prints: ["the handler has 7\n200 {}"] },
  {
    page: "protoport/docs/how-to/frameworks.md",
    start: 'import { createServer } from "node:http"',
    before: routes,
    after: `await new Promise((resolve) => server.once("listening", resolve));
const url = \`http://127.0.0.1:\${server.address().port}/orders/7\`;
const remove = (fields = {}) => fetch(url, { method: "DELETE", headers: fields });
const large = await remove({ "x-large": "x".repeat(20_000) });
console.log(large.status, (await large.json()).code);
const response = await remove();
console.log(response.status, await response.text());
process.emit("SIGTERM");
console.log(server.listening);`,
    prints: ["431 8\nthe handler has 7\n200 {}\nfalse"],
  },
  { page: "protoport/docs/reference/rest-options.md", start: "createGateway({\n  routes,\n  rest: {\n    service",
    before: `import { createGateway } from "@protoport/gateway";\n${routes}`,
    after: `${listen}\n${callGateway("/orders/7", "DELETE")}`, prints: ["the handler has 7\n200 {}"] },
  {
    page: "protoport/docs/reference/rest.md",
    start: "createGateway({\n  routes,\n  rest: {\n    errorRecord",
    before: `import { createGateway } from "@protoport/gateway";\n${routes}`,
    after: `${listen}\n${callGateway("/orders/007", "DELETE", `${typeOfResponse}, await response.text()`)}`,
    prints: [
      `400 application/json ${JSON.stringify({
        reason: 'id: "007" is not an int64',
        procedure: "/orders.v1.OrderService/DeleteOrder",
      })}`,
    ],
  },
  {
    page: "protoport/docs/how-to/gateway.md",
    start: "import { createFetchGateway }",
    after: `const response = await serve(new Request("http://orders/orders/7", { method: "DELETE" }));
console.log(response.status, await response.text());`,
    prints: ["the handler has 7\n200 {}"],
  },
  {
    page: "protoport/docs/how-to/gateway.md",
    start: "import { Code, ConnectError, createContextKey }",
    before: `import { createGateway } from "@protoport/gateway";
import { OrderService } from "./gen/orders/v1/orders_pb.ts";
const callerOf = async (authorization) => ({ "Bearer good": "ada", "Bearer narrow": "eve" })[authorization];
const mayCall = (caller, procedure) => caller === "ada" && procedure === "/orders.v1.OrderService/DeleteOrder";
const deleteOrder = (request, { values }) => (console.log(\`the caller is \${values.get(callerKey)}\`), {});
const routes = (router) => router.service(OrderService, { deleteOrder });`,
    after: `${listen}
for (const authorization of ["Bearer good", "Bearer narrow", "Bearer bad"]) {
  const response = await fetch(\`http://127.0.0.1:\${port}/orders/7\`, { method: "DELETE", headers: { authorization } });
  console.log(response.status, response.headers.get("www-authenticate"), (await response.json()).message);
}
await gateway.close();`,
    prints: ["the caller is ada\n200 null undefined\n403 null not yours\n401 Bearer who are you?"],
  },
  {
    page: "protoport/docs/how-to/mcp.md",
    start: "import { createBearerAuth, createResourceMetadata",
    before: `import { createGateway } from "@protoport/gateway";
import { createMcp } from "@protoport/gateway/mcp";
${routes}
const mcp = createMcp({ tools: ["orders.v1.*"] });`,
    after: `${listen}
const challenge = (await fetch(\`http://127.0.0.1:\${port}/mcp\`, { method: "POST" })).headers.get("www-authenticate");
const [, url = ""] = /resource_metadata="([^"]+)"/.exec(challenge ?? "") ?? [];
const document = await fetch(\`http://127.0.0.1:\${port}\${new URL(url).pathname}\`);
console.log(url, await document.text());
verifier.value.close?.();
await gateway.close();`,
    prints: [
      `{ issuer: 'https://id.example', keys: 1 } keys changed\nhttps://shop.example/.well-known/oauth-protected-resource/mcp ${JSON.stringify(
        {
          resource: "https://shop.example/mcp",
          authorization_servers: ["https://id.example"],
          scopes_supported: ["orders:delete"],
          bearer_methods_supported: ["header"],
          resource_name: "Shop",
        },
      )}`,
    ],
  },
  {
    page: "protoport/docs/reference/rest.md",
    start: "import { createGateway, parseHttpRules }",
    before: `import { Health } from "@protoport/gateway/health";
const routes = (router) => router.service(Health, { check: ({ service }) => ({ status: service === "orders" ? 1 : 2 }) });`,
    after: `${listen}\n${callGateway("/health/orders")}`,
    prints: ['200 {"status":"SERVING"}'],
  },
  { page: "protoport/docs/how-to/openapi.md", start: "import { readFileSync }", before: routes,
    after: `${listen}\n${callGateway("/openapi.json", "GET", `${typeOfResponse}, ${summaryOfDelete}`)}`,
    prints: ["200 application/json Deletes the single order with the given identifier"] },
];

const blocks = blocksRunBy("protoport/test/suites/clients/documented-programs.test.ts");
let folder: string;
let provider: IdentityProvider;
let server: Gateway;
let port: number;

beforeAll(async () => {
  // Inside the project, so that the packages and their dependencies are resolved as in a user's program.
  folder = mkdtempSync(join(projectFolder, "protoport/test/code-blocks-"));
  provider = await startIdentityProvider(await createSigningKey("ES256", "key"));
  const { cert, key, authority } = createIssuedCertificate("localhost");
  writeFileSync(join(folder, "authority.pem"), authority);
  server = createGateway({
    routes: (router) => {
      router.service(OrderService, { deleteOrder: () => ({}) });
      router.service(Health, createHealthService({ readiness: new Readiness({}), services: [OrderService.typeName] }));
    },
  });
  ({ port } = await server.listen({ host: "127.0.0.1", port: 0, tls: { cert, key } }));
  writeFileSync(
    join(folder, "routes.ts"),
    `import type { ConnectRouter } from "@connectrpc/connect";
import { OrderService } from "./gen/orders/v1/orders_pb.ts";
const deleteOrder = ({ id }: { id?: bigint }) => (console.log(\`the handler has \${id}\`), {});
export const routes = (router: ConnectRouter) => router.service(OrderService, { deleteOrder });
`,
  );
  writeFileSync(
    join(folder, "greetings.ts"),
    `import type { UntypedServiceImplementation } from "@grpc/grpc-js";
export const greetings: UntypedServiceImplementation = {
  greet: (call: any, callback: any) => callback(null, { text: \`Hello \${call.request.name}\` }),
};
`,
  );
  generateGreetCode(folder);
  writeOrderCode(folder);
  // The published gateway contains these files.
  cpSync(join(projectFolder, "protoport/gateway/proto"), join(folder, "proto"), { recursive: true });
  // The programs use paths below it.
  symlinkSync(join(projectFolder, "node_modules"), join(folder, "node_modules"));
  cpSync(join(projectFolder, "protoport/testing/proto/orders"), join(folder, "proto/orders"), { recursive: true });
  writeFileSync(join(folder, "buf.yaml"), "version: v2\nmodules: [{ path: proto }]\n");
  execFileSync("buf", ["build", "-o", "definition.binpb"], { cwd: folder });
});
afterAll(async () => {
  provider.stop();
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

function programOf({ page, text }: PageBlock): Program {
  const program = programs.find((each) => each.page === page && text.startsWith(each.start));
  if (program === undefined) throw new Error("no row has the code around this block");
  return program;
}

function writeProgram({ text, line }: PageBlock, { before = "", after = "" }: Program): string {
  const replaced = text
    .replaceAll("dns:orders:50051", `https://localhost:${String(port)}`)
    .replaceAll('baseUrl: "https://orders.example"', `baseUrl: "https://localhost:${String(port)}"`)
    .replaceAll("https://id.example", provider.issuer)
    .replaceAll("port: 8080", "port: 0")
    .replace(/^createGateway\(/m, "const gateway = createGateway(");
  const file = join(folder, `program-${String(line)}.ts`);
  writeFileSync(file, [before, replaced, after].join("\n"));
  return file;
}

async function run(file: string): Promise<string> {
  await using running = startNode([file], folder, {
    TOKEN: "good",
    // The variables by which node and grpc-js trust an additional authority.
    NODE_EXTRA_CA_CERTS: join(folder, "authority.pem"),
    GRPC_DEFAULT_SSL_ROOTS_FILE_PATH: join(folder, "authority.pem"),
  });
  expect(await running.end(), running.stderr()).toBe(0);
  return running.stdout().trim().replaceAll(provider.issuer, "https://id.example");
}

test.each(blocks)("the program at line $line in $page has the documented effect", async (block) => {
  const program = programOf(block);
  const file = writeProgram(block, program);
  for (const prints of program.prints) expect(await run(file)).toBe(prints);
});

test.each(programs.map((program) => ({ ...program, inOneLine: program.start.replaceAll(/\s+/g, " ") })))(
  'the code block "$inOneLine" in $page still exists',
  ({ page, start }) => expect(blocks.some((block) => block.page === page && block.text.startsWith(start))).toBe(true),
);
