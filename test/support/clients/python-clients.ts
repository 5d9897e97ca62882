import { mkdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import { buildStep } from "../process/build-step.ts";
import type { ClientProgram } from "./client-program.ts";
import { buf, layOutRecipe, openApiFile, protoFolder, recipeFolder, testProtoFolder } from "./client-recipe.ts";
import { openPython } from "../process/python.ts";

/** The definitions that grpcio's stub is made of; it needs those that are imported too. */
const definitions = [
  "google/api/annotations.proto",
  "google/api/http.proto",
  "plantstore/v1/plant_service.proto",
  "streams/v1/stream_service.proto",
];

let made: Promise<{ folder: string; python: string }> | undefined;

// Generates the code of all of them.
async function generateAll(): Promise<{ folder: string; python: string }> {
  const programs = await openPython(join(recipeFolder("python"), "requirements.txt"));
  const python = join(programs, "python");
  const folder = layOutRecipe("python");
  const environment = { PATH: [programs, process.env["PATH"]].join(delimiter) };
  mkdirSync(join(folder, "grpcio"), { recursive: true });
  const options = ["-I", protoFolder, "-I", testProtoFolder, "--python_out=grpcio", "--grpc_python_out=grpcio"];
  await buildStep(python, ["-m", "grpc_tools.protoc", ...options, ...definitions], { folder });
  const connect = ["generate", protoFolder, "--path", join(protoFolder, "plantstore")];
  await buildStep(buf, connect, { folder, environment });
  const openApi = ["generate", "--path", openApiFile, "--output-path", "openapi", "--meta", "none", "--overwrite"];
  await buildStep("openapi-python-client", openApi, { folder, environment });
  return { folder, python };
}

/** Makes what a program of `test/clients/python/` needs; what an earlier call has made is taken. */
export async function buildPythonClient(program: string): Promise<ClientProgram> {
  made ??= generateAll();
  const { folder, python } = await made;
  return { command: [python, program], folder };
}
