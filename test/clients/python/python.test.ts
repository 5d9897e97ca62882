import { mkdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import { describe } from "vitest";
import { buildStep } from "../../support/build-step.ts";
import { type ClientProgram, describeClient } from "../../support/client-program.ts";
import { buf, layOutRecipe, openApiFile, protoFolder } from "../../support/client-recipe.ts";
import { completeProgram, describeDocumented } from "../../support/documented-client.ts";
import { openPython } from "../../support/python.ts";
import { hasProgram } from "../../support/tools-folder.ts";

const clients = [
  { name: "grpcio", program: "grpcio_client.py" },
  { name: "connectrpc", program: "connect_client.py" },
  { name: "openapi-python-client", program: "openapi_client.py" },
];

/** The definitions that grpcio's stub is made of; it needs those that are imported too. */
const definitions = ["google/api/annotations.proto", "google/api/http.proto", "plantstore/v1/plant_service.proto"];

let made: Promise<{ folder: string; python: string }> | undefined;

/** Generates all three, once. */
async function generateAll(): Promise<{ folder: string; python: string }> {
  const programs = await openPython(join(import.meta.dirname, "requirements.txt"));
  const python = join(programs, "python");
  const folder = layOutRecipe("python");
  const address = { authority: 'os.environ["AUTHORITY"]', url: 'os.environ["URL"]' };
  completeProgram(join(folder, "documented.py"), "python", address);
  const environment = { PATH: [programs, process.env["PATH"]].join(delimiter) };
  mkdirSync(join(folder, "grpcio"), { recursive: true });
  const outputs = ["--python_out=grpcio", "--grpc_python_out=grpcio"];
  await buildStep(python, ["-m", "grpc_tools.protoc", "-I", protoFolder, ...outputs, ...definitions], { folder });
  const connect = ["generate", protoFolder, "--path", join(protoFolder, "plantstore")];
  await buildStep(buf, connect, { folder, environment });
  const openApi = ["generate", "--path", openApiFile, "--output-path", "openapi", "--meta", "none", "--overwrite"];
  await buildStep("openapi-python-client", openApi, { folder, environment });
  return { folder, python };
}

async function build(program: string): Promise<ClientProgram> {
  made ??= generateAll();
  const { folder, python } = await made;
  return { command: [python, program], folder };
}

describe.runIf(hasProgram("python3"))("Python", () => {
  for (const { name, program } of clients) describeClient({ name, build: () => build(program) });
  describeDocumented({ language: "python", build: () => build("documented.py") });
});
