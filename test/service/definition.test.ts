import { execFileSync } from "node:child_process";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type DescriptorProto, type FileDescriptorProto, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
// oxfmt-ignore
import { DeletePlantRequestSchema, file_plantstore_v1_plant_service, PlantService
} from "../../src/gen/es/plantstore/v1/plant_service_pb.ts";
import { PlantServiceService } from "../../src/gen/grpc-js/plantstore/v1/plant_service.ts";
import { projectFolder } from "@protoport/testing/process";

// `npm run generate -- --check` compares all generated files. The tests do not run the generators.

function compileDefinition(): FileDescriptorProto {
  const build = ["build", "--path", "proto/plantstore", "--as-file-descriptor-set", "--exclude-source-info", "-o", "-"];
  const bytes = new Uint8Array(execFileSync("buf", build, { cwd: projectFolder }));
  const { file } = fromBinary(FileDescriptorSetSchema, bytes);
  const compiled = file.find(({ name }) => name === "plantstore/v1/plant_service.proto");
  if (compiled === undefined) throw new Error("buf built no plantstore/v1/plant_service.proto");
  return compiled;
}

/** Returns what a file's stubs depend on, without JSON names, which generators derive. */
function interfaceOf({ service, messageType }: Pick<FileDescriptorProto, "service" | "messageType">): unknown {
  return { service, messages: messageType.map(fieldsOf) };
}

function fieldsOf({ name, field }: DescriptorProto): unknown {
  return {
    name,
    fields: field.map(({ name: of, number, type, label, proto3Optional }) => [of, number, type, label, proto3Optional]),
  };
}

test("the Connect stubs match the protobuf definition", () =>
  expect(interfaceOf(file_plantstore_v1_plant_service.proto)).toEqual(interfaceOf(compileDefinition())));

test("the grpc-js stubs send the same bytes as the Connect stubs", () => {
  expect(Object.keys(PlantServiceService)).toEqual(PlantService.methods.map(({ localName }) => localName));
  const { path, requestSerialize } = PlantServiceService.deletePlant;
  const { input, name } = PlantService.method.deletePlant;
  expect(path).toBe(`/${PlantService.typeName}/${name}`);
  for (const id of [undefined, 0n, 7n, -1n, -(2n ** 63n), 2n ** 63n - 1n]) {
    const request = id === undefined ? {} : { id };
    const bytes = toBinary(DeletePlantRequestSchema, { $typeName: input.typeName, ...request });
    expect(requestSerialize(request)).toEqual(Buffer.from(bytes));
  }
});
