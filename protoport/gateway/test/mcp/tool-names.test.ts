import { create, createFileRegistry, type DescMethod, type MessageInitShape } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { createMcp, type McpOptions } from "../../src/mcp/index.ts";

// Names for tools from several services, of which a later one may be hostile.

/** Returns the method that a name such as `package.Service.Method` denotes. */
function methodOf(fullName: string): DescMethod {
  const [name = "", service = "", ...parts] = fullName.split(".").toReversed();
  const packageName = parts.toReversed().join(".");
  const type = `.${packageName}.M`;
  const file: MessageInitShape<typeof FileDescriptorProtoSchema> = {
    name: `${fullName}.proto`,
    package: packageName,
    syntax: "proto3",
    messageType: [{ name: "M" }],
    service: [{ name: service, method: [{ name, inputType: type, outputType: type }] }],
  };
  const registry = createFileRegistry(create(FileDescriptorProtoSchema, file), () => undefined);
  const [found] = registry.getService(`${packageName}.${service}`)?.methods ?? [];
  return found ?? expect.unreachable("no method");
}

function namesOf(fullNames: readonly string[], tools: McpOptions["tools"] = ["*"]): readonly string[] {
  return [...createMcp({ tools }).toolNamesOf(fullNames.map(methodOf)).values()];
}

const long = `a.${"b".repeat(60)}.Long.Get`;
const [hashed = ""] = namesOf([long]);

test("a long tool name ends with a hash of its RPC's name", () => {
  expect(hashed).toBe(`${"b".repeat(46)}_Long_Get_18711dfc`);
});

test.each([
  { name: "an earlier RPC's plain name", earlier: "a.b_c.D.Get", later: "a.b.c_D.Get", kept: "a_b_c_D_Get" },
  {
    name: "an earlier RPC's hashed name",
    earlier: long,
    later: hashed.replace("_", ".").replace("_", "."),
    kept: hashed,
  },
])("a tool name that equals $name is changed", ({ earlier, later, kept }) => {
  const names = namesOf([earlier, later]);
  expect(names[0]).toBe(kept);
  expect(names[1]).not.toBe(kept);
  expect(names[1]).toMatch(/_[0-9a-f]{8}$/);
});

/** Selects all RPCs, and names the tool for `z.Z.Run`. */
const toolsWithName: McpOptions["tools"] = ({ parent }) => parent.typeName !== "z.Z" || { name: "a_b_C_Get" };

test("a default tool name differs from names that the program sets", () => {
  expect(namesOf(["a.b.C.Get", "z.Z.Run"], toolsWithName)).toEqual([
    expect.stringMatching(/^a_b_C_Get_[0-9a-f]{8}$/),
    "a_b_C_Get",
  ]);
});
