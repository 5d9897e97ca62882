import { expect, test } from "vitest";
import { type Call, writeBuf, writeCurl, writeGrpcurl } from "../../src/files/shell-commands.ts";
import { callOf } from "../shell-call.ts";

test.each([
  { procedure: "/shop.v1.Shop/Get", want: "shop.v1.Shop/Get" },
  { procedure: "/shop;id.Shop/Get", want: "'shop;id.Shop/Get'" },
  { procedure: "/a'b'c/Get", want: String.raw`'a'\''b'\''c/Get'` },
  { procedure: "/shop.v1.Shop/Get;", want: "'shop.v1.Shop/Get;'" },
])("the procedure $procedure is written as $want in a grpcurl command", ({ procedure, want }) => {
  expect(writeGrpcurl(callOf({ procedure })).split("\n").at(-1)).toBe(`  127.0.0.1:8080 ${want}`);
});

const overTls = { baseUrl: "https://shop.example" };

test.each<{ readonly name: string; readonly changes: Partial<Call>; readonly want: readonly string[] }>([
  { name: "over plain HTTP", changes: {}, want: ["grpcurl -plaintext", "127.0.0.1:8080 shop.v1.Shop/Get"] },
  {
    name: "with the default port of HTTP",
    changes: { baseUrl: "http://shop.example" },
    want: ["grpcurl -plaintext", "shop.example:80 shop.v1.Shop/Get"],
  },
  { name: "with TLS and its default port", changes: overTls, want: ["grpcurl", "shop.example:443 shop.v1.Shop/Get"] },
])("writeGrpcurl connects $name", ({ changes, want }) => {
  expect(writeGrpcurl(callOf(changes)).split(" \\\n  ")).toEqual([want[0], "-d '{}'", want[1]]);
});

test.each<{ readonly name: string; readonly changes: Partial<Call>; readonly want: string }>([
  { name: "HTTP/2 without TLS", changes: {}, want: "buf curl --protocol grpc --http2-prior-knowledge -d '{}'" },
  { name: "TLS", changes: overTls, want: "buf curl --protocol grpc -d '{}'" },
  {
    name: "the token, also for reflection,",
    changes: { ...overTls, needsToken: true },
    want: `buf curl --protocol grpc --reflect-header '*' -H "Authorization: Bearer $TOKEN" -d '{}'`,
  },
])("writeBuf uses $name if the call needs it", ({ changes, want }) => {
  expect(writeBuf(callOf(changes)).split(" \\\n  ").slice(0, -1).join(" ")).toBe(want);
});

test.each([
  ["grpcurl", writeGrpcurl],
  ["buf", writeBuf],
] as const)("the %s command contains each message of a stream", (_, write) => {
  expect(write(callOf({ messages: ['{"a":1}', '{"a":2}'] }))).toContain(`-d '{"a":1}\n{"a":2}'`);
});

test("the grpcurl command reads the token from the environment", () =>
  expect(
    writeGrpcurl(callOf({ needsToken: true }))
      .split(" \\\n  ")
      .slice(0, -1),
  ).toEqual(["grpcurl -plaintext", '-H "Authorization: Bearer $TOKEN"', "-d '{}'"]));

test("the curl command has the token before header fields and body", () => {
  const request = { ...callOf({}).request, headers: [["x-a", "b"]] satisfies [string, string][], body: "{}" };
  expect(writeCurl(callOf({ request, needsToken: true })).split(" \\\n  ")).toEqual([
    "curl -i",
    "-X POST",
    '-H "Authorization: Bearer $TOKEN"',
    "-H 'x-a: b'",
    "--data-binary '{}'",
    "'http://127.0.0.1:1/a'",
  ]);
});

test("a single quote in a body ends and continues the quoted word", () => {
  const request = { ...callOf({}).request, body: "it's" };
  expect(writeCurl(callOf({ request }))).toContain(String.raw`--data-binary 'it'\''s'`);
});

test("the buf command keeps the server's path prefix", () => {
  const baseUrl = "https://shop.example/garden";
  expect(writeBuf(callOf({ baseUrl })).split("\n").at(-1)).toBe("  https://shop.example/garden/shop.v1.Shop/Get");
});

test("writeCurl disables buffering for a stream, and reads a file body", () => {
  const request = { ...callOf({}).request, body: new File(["a"], "leaf.txt") };
  const words = ["curl -iN", "-X POST", "--data-binary '@leaf.txt'", "'http://127.0.0.1:1/a'"];
  expect(writeCurl(callOf({ request, isStream: true }))).toBe(words.join(" \\\n  "));
});
