import type { DescService } from "@bufbuild/protobuf";
import { FieldDescriptorProto_Type } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { createOpenApi } from "../../src/openapi/create-open-api.ts";
import { serviceIn, stringField } from "../../../testing/src/gateway/file-init.ts";

/** Returns a service whose request is the first message. Each message has a text and the next message. */
function serviceOfCycle(names: readonly string[]): DescService {
  const messageType = names.map((name, at) => {
    const typeName = `.cycle.${names[at + 1] ?? names[0]}`;
    const next = { ...stringField("next", 2), type: FieldDescriptorProto_Type.MESSAGE, typeName };
    return { name, field: [stringField("text", 1), next] };
  });
  const method = [{ name: "Find", inputType: `.cycle.${names[0]}`, outputType: `.cycle.${names[0]}` }];
  const file = { name: "cycle.proto", package: "cycle", syntax: "proto3", messageType };
  return serviceIn({ ...file, service: [{ name: "Finder", method }] }, "cycle.Finder");
}

test.each([
  { names: ["A"], want: ["text"] },
  { names: ["A", "B"], want: ["text", "next.text"] },
  { names: ["A", "B", "C"], want: ["text", "next.text", "next.next.text"] },
])("query parameters list a cycle of $names.length message types only once", ({ names, want }) => {
  const { paths } = createOpenApi([serviceOfCycle(names)], {
    info: { title: "Test", version: "1" },
    rest: { rules: [{ selector: "cycle.Finder.Find", pattern: { case: "get", value: "/find" } }] },
  });
  expect(paths["/find"]?.get?.parameters?.map((parameter) => parameter.name)).toEqual(want);
});
