import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { createFileRegistry, type DescMethod, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { plants } from "../../../../bench/native-peers.ts";
import { PlantService } from "../../../../src/gen/es/plantstore/v1/plant_service_pb.ts";
import { projectFolder } from "../../../../protoport/testing/src/process/child-program.ts";

// A new plant store RPC must not stop the bench's peers from building. The peers in Go and Rust are compiled outside
// the checkout, from their own folder and from what buf generates there.

/** Returns the paths in a folder `plantstore`, which only the plant store has. */
function ofPlantStore(paths: readonly string[]): string[] {
  return paths
    .map((path) => relative(projectFolder, path))
    .filter((path) => /^(?:proto|src|.*\/gen)\/plantstore\//.test(path));
}

const buf = (...args: readonly string[]): Buffer => execFileSync(join(projectFolder, "node_modules/.bin/buf"), args);

test("the peers' plant service definition imports nothing from the plant store", () => {
  const paths = buf("ls-files", ...plants, "--include-imports")
    .toString()
    .trim()
    .split("\n");
  expect(paths).toContain(join(projectFolder, "bench/peers/proto/plantstore/v1/plant_service.proto"));
  expect(ofPlantStore(paths)).toEqual([]);
});

/** Adds a file and its relative imports to `files`, except the bench's generated code, which may not exist. */
function addImports(file: string, files: Set<string>): void {
  if (files.has(file)) return;
  files.add(file);
  const text = readFileSync(file, "utf8");
  for (const [, path = ""] of text.matchAll(/(?:from|import|import\()\s*"(\.[^"]+)"/g)) {
    const imported = join(dirname(file), path);
    if (!imported.includes("bench/peers/gen/")) addImports(imported, files);
  }
}

const peers = join(projectFolder, "bench/peers");
const programs = readdirSync(peers).filter((name) => name.endsWith(".ts"));

test.each(programs)("bench/peers/%s imports nothing from the plant store", (name) => {
  const files = new Set<string>();
  addImports(join(peers, name), files);
  expect(files.size).toBeGreaterThan(1);
  expect(ofPlantStore([...files])).toEqual([]);
});

/** Returns the parts of an RPC's definition that determine its wire format. */
function wireOf({ name, parent, methodKind, input, output }: DescMethod): object {
  const fields = input.fields.map(({ number, fieldKind, proto }) => ({
    number,
    fieldKind,
    type: proto.type,
    optional: proto.proto3Optional,
  }));
  return { procedure: `/${parent.typeName}/${name}`, methodKind, fields, output: output.typeName };
}

test("the peers' DeletePlant has the plant store's wire format", () => {
  const image = buf("build", ...plants, "--as-file-descriptor-set", "-o", "-");
  const service = createFileRegistry(fromBinary(FileDescriptorSetSchema, image)).getService(PlantService.typeName);
  expect(service?.methods.map(wireOf)).toEqual([wireOf(PlantService.method.deletePlant)]);
});
