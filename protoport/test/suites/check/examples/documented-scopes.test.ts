import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { requiredScopesOf } from "../../../../auth/src/index.ts";
import { readDescriptorSet } from "../../../../gateway/src/protobuf/descriptors/index.ts";
import { createTempFolder, projectFolder } from "@protoport/testing/process";
import { blocksRunBy } from "../../../support/docs/page-blocks.ts";

// The definition in protoport/docs/how-to/scopes.md imports a file from the package; the set may or may not contain it.

const blocks = blocksRunBy("protoport/test/suites/check/examples/documented-scopes.test.ts");
const [{ text: definition } = { text: "" }] = blocks;

test.each([
  ["with", []],
  ["without", ["--exclude-imports"]],
])("the documented scopes are read from a descriptor set %s imports", (_, flags) => {
  using folder = createTempFolder();
  const run = (...args: readonly string[]): Buffer => execFileSync("buf", args, { cwd: folder.path });
  cpSync(join(projectFolder, "protoport/auth/proto"), folder.file("auth"), { recursive: true });
  mkdirSync(folder.file("proto"));
  writeFileSync(folder.file("buf.yaml"), "version: v2\nmodules: [{ path: proto }, { path: auth }]\n");
  const messages = ["DeleteOrderRequest", "DeleteOrderResponse", "GetOrderRequest", "Order"];
  const declared = messages.map((name) => `message ${name} {}`);
  const text = ['syntax = "proto3";', "package orders.v1;", definition, ...declared].join("\n");
  writeFileSync(folder.file("proto/orders.proto"), text);
  run("lint", "auth");
  const set = run("build", "proto", "--as-file-descriptor-set", "-o", "-", ...flags);
  const [orders] = readDescriptorSet(set).services;
  expect(orders?.methods.map(requiredScopesOf)).toEqual([["orders:delete"], []]);
});
