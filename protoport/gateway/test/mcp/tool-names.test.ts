import type { DescMethod } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { createMcp, type McpOptions } from "../../src/mcp/index.ts";
import { serviceIn } from "../../../testing/src/gateway/file-init.ts";

// Names for tools from several services, of which a later one may be hostile.

/** Returns the method that a name such as `package.Service.Method` denotes. */
function methodOf(fullName: string): DescMethod {
  const [name = "", service = "", ...parts] = fullName.split(".").toReversed();
  const packageName = parts.toReversed().join(".");
  const type = `.${packageName}.M`;
  const method = [{ name, inputType: type, outputType: type }];
  const messageType = [{ name: "M" }];
  const file = { name: "a.proto", package: packageName, messageType, service: [{ name: service, method }] };
  return serviceIn(file, `${packageName}.${service}`).methods[0] ?? expect.unreachable("no method");
}

function namesOf(fullNames: readonly string[], tools: McpOptions["tools"] = ["*"]): readonly string[] {
  return [...createMcp({ tools }).toolNamesOf(fullNames.map(methodOf)).values()];
}

const long = `a.${"b".repeat(60)}.Long.Get`;
const [hashed = ""] = namesOf([long]);

test("a long tool name ends with a hash of its RPC's name", () =>
  expect(hashed).toBe(`${"b".repeat(46)}_Long_Get_18711dfc`));

const [lookalike = ""] = namesOf(["shop_v1.Orders.Get0"]);

test.each([
  ["shop_v1.Orders.Get0", "shop_v1_Orders_Get0_a2c92dd8"],
  ["shop.v1_Orders.Get0", expect.stringMatching(/^shop_v1_Orders_Get0_[0-9a-f]{8}$/)],
  ["shop.v1.Orders.Get0", "shop_v1_Orders_Get0"],
  // The last part of the name is similar to a hash.
  [lookalike.replaceAll("_", "."), expect.stringMatching(/^shop_v1_Orders_Get0_a2c92dd8_[0-9a-f]{8}$/)],
  [long.replace("Long.Get", "Long_Get"), expect.stringMatching(/^b{46}_Long_Get_[0-9a-f]{8}$/)],
])("the tool name of $0 does not depend on other RPCs", (name, expected) => {
  const similar = ["shop_v1.Orders.Get0", "shop.v1_Orders.Get0", "shop.v1.Orders.Get0"];
  const others = [...similar, long, lookalike.replaceAll("_", ".")];
  const alone = namesOf([name]);
  expect(alone).toEqual([expected]);
  const last = namesOf([...others.filter((other) => other !== name), name]);
  expect(last.slice(-1)).toEqual(alone);
  expect(new Set(last).size).toBe(last.length);
});

test.each([
  { name: "a.b.C.Get", given: "a_b_C_Get" },
  { name: "a.b_C.Get", given: namesOf(["a.b_C.Get"])[0] ?? "" },
])("the default tool name of $name avoids names from the program", ({ name, given }) => {
  const tools: McpOptions["tools"] = ({ parent }) => parent.typeName !== "z.Z" || { name: given };
  expect(namesOf([name, "z.Z.Run"], tools)).toEqual([expect.stringMatching(/^a_b_C_Get_[0-9a-f]{8}$/), given]);
});
