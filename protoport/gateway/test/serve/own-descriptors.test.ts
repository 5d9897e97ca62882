import { createRegistry } from "@bufbuild/protobuf";
import { file_google_protobuf_descriptor } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { GreenhouseService, ReadingSchema } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { requireOwnDescriptors } from "../../src/serve/create-rpcs.ts";

test("a registry type from another protobuf-es copy is rejected", () => {
  const proto: typeof GreenhouseService.file.proto = Object.setPrototypeOf({ ...GreenhouseService.file.proto }, {});
  const foreign = createRegistry({ ...ReadingSchema, file: { ...GreenhouseService.file, proto } });
  expect(() => requireOwnDescriptors([GreenhouseService], createRegistry(ReadingSchema), undefined)).not.toThrow();
  expect(() => requireOwnDescriptors([GreenhouseService], foreign, undefined)).toThrow(
    "message greenhouse.v1.Reading was created by a different copy of @bufbuild/protobuf",
  );
});

test("a registry with the types of descriptor.proto is accepted", () => {
  const registry = createRegistry(file_google_protobuf_descriptor);
  expect(() => requireOwnDescriptors([GreenhouseService], registry, undefined)).not.toThrow();
});
