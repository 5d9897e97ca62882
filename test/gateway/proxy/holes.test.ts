import { type MessageInitShape } from "@bufbuild/protobuf";
import { FieldDescriptorProto_Type as Type, type FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { expect, onTestFinished, test } from "vitest";
import { createProxy, type ReloadReport } from "../../../src/gateway/create-proxy.ts";
import { within } from "../../support/deadline.ts";
import { startReflectingServer } from "../../support/gateway/reflecting-server.ts";

// An upstream whose reflection does not give every file: the services that do not need it are proxied all the same.

type FileInit = MessageInitShape<typeof FileDescriptorProtoSchema>;

/** A file with a service `NAME.Service`, whose message has a field of another type. */
function fileOf(name: string, typeName: string | undefined, dependency: readonly string[]): FileInit {
  const typed = typeName === undefined ? { type: Type.STRING } : { type: Type.MESSAGE, typeName };
  return {
    name: `${name}.proto`,
    package: name,
    syntax: "proto3",
    dependency: [...dependency],
    messageType: [{ name: "Text", field: [{ name: "a_text", number: 1, label: 1, ...typed }] }],
    service: [{ name: "Service", method: [{ name: "Get", inputType: `.${name}.Text`, outputType: `.${name}.Text` }] }],
  };
}

const whole = fileOf("whole", undefined, ["openapi/v3/annotations.proto"]);
const other = fileOf("other", ".third.Text", ["third.proto"]);
const third = fileOf("third", undefined, []);

test("a service that lacks a type is left out, with a reason, until a reload finds the type", async () => {
  await using upstream = await startReflectingServer([whole, other]);
  const reports: ReloadReport[] = [];
  const proxy = await within(
    createProxy({
      upstreams: [{ upstream: `http://${upstream.address}`, descriptors: "reflection" }],
      onReload: (report) => void reports.push(report),
    }),
    "the descriptors",
  );
  onTestFinished(() => proxy.close());
  const served = (): readonly string[] => proxy.services.map(({ typeName }) => typeName).toSorted();
  expect(served()).toEqual(["whole.Service"]);
  expect(proxy.omitted).toEqual([
    `${upstream.address}: other.Service: the type third.Text, which other.Text has a field of, is missing`,
  ]);
  // C++, Java and Python leave the names in JSON out of what they reflect.
  expect(proxy.services[0]?.methods[0]?.input.fields[0]?.jsonName).toBe("aText");

  upstream.files = [whole, other, third];
  await proxy.reload();
  expect([served(), proxy.omitted]).toEqual([["other.Service", "third.Service", "whole.Service"], []]);

  upstream.files = [whole, other];
  await proxy.reload();
  expect(served()).toEqual(["whole.Service"]);
  expect(reports.map(({ added, removed }) => [added.length, removed.length])).toEqual([
    [2, 0],
    [0, 2],
  ]);
});
