import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { createFileRegistry, type DescMethod, type DescMethodUnary, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { createGateway } from "../../../../gateway/src/index.ts";
import { openValidation } from "../../../../gateway/src/validation/index.ts";
import { createTempFolder, projectFolder } from "@protoport/testing/process";
import { blocksRunBy } from "../../../support/docs/page-blocks.ts";

// The definition and the error in protoport/docs/how-to/validation.md.

const [definition = "", documentedError = ""] = blocksRunBy(
  "protoport/test/suites/check/examples/documented-validation.test.ts",
).map(({ text }) => text);

test("the documented definition refuses a request with the documented error", async () => {
  using folder = createTempFolder();
  for (const name of ["protoport/gateway/proto/google", "protoport/testing/proto/buf"])
    cpSync(join(projectFolder, name), folder.file(join("proto", basename(name))), { recursive: true });
  mkdirSync(folder.file("proto/shop"));
  writeFileSync(folder.file("buf.yaml"), "version: v2\nmodules: [{ path: proto }]\n");
  const rule = 'option (google.api.http) = { post: "/accounts" body: "*" };';
  const service = `service Accounts { rpc Create(Account) returns (Account) { ${rule} } }`;
  const head = ['syntax = "proto3";', "package shop.v1;", 'import "google/api/annotations.proto";'];
  writeFileSync(folder.file("proto/shop/shop.proto"), [...head, definition, service].join("\n"));
  const set = folder.file("set.binpb");
  execFileSync("buf", ["build", "--as-file-descriptor-set", "-o", set], { cwd: folder.path });
  const types = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(set)));
  const rpc = types.getService("shop.v1.Accounts")?.methods.find(isUnary);
  if (rpc === undefined) throw new Error("the definition has no unary RPC");
  const validation = await openValidation();
  const { fetch } = createGateway({ validation, routes: (router) => router.rpc(rpc, (account) => account) });
  const headers = { "content-type": "application/json" };
  const create = (email: string): Promise<Response> =>
    fetch(new Request("http://a/accounts", { method: "POST", headers, body: JSON.stringify({ email }) }));
  expect((await create("ada@example.com")).status).toBe(200);
  const { details, ...error } = JSON.parse(await (await create("ada")).text());
  const { details: documentedDetails, ...documented } = JSON.parse(documentedError);
  expect([error, typesOf(details)]).toEqual([documented, expect.arrayContaining(typesOf(documentedDetails))]);
});

const typesOf = (details: readonly { readonly "@type": string }[]): string[] => details.map((each) => each["@type"]);
const isUnary = (method: DescMethod): method is DescMethodUnary => method.methodKind === "unary";
