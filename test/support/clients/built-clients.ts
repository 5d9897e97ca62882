import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { buildStep } from "../../../protoport/testing/src/process/build-step.ts";
import { projectFolder } from "../../../protoport/testing/src/process/child-program.ts";
import { openPython } from "../../../protoport/testing/src/process/python.ts";
import { toolsFolder } from "../../../protoport/testing/src/process/tools-folder.ts";
import type { ClientProgram } from "./client-program.ts";
// oxfmt-ignore
import { buf, definitions, googleProtoFolder, layOutRecipe, protoFolder, recipeFolder, testProtoFolder
} from "./client-recipe.ts";

/** Returns a function that builds only on its first call. */
function once<Built>(build: () => Promise<Built>): () => Promise<Built> {
  let built: Promise<Built> | undefined;
  return () => (built ??= build());
}

/** The Go clients whose programs are in `test/suites/clients/go/`. */
export const goClients = ["grpc-go", "connect-go"] as const;

const buildGo = once(async () => {
  const folder = layOutRecipe("go");
  await buildStep(buf, ["generate", ...definitions], { folder });
  await buildStep("go", ["build", "-o", "bin/", ...goClients.map((name) => `./${name}`)], { folder });
  return folder;
});

/** Builds one client in {@link goClients}, unless an earlier call has built it. */
export const buildGoClient = async (name: string): Promise<ClientProgram> => ({
  command: [join(await buildGo(), "bin", name)],
});

const buildJava = once(async () => {
  const folder = layOutRecipe("java");
  const folders = [
    `-Dproto.folder=${protoFolder}`,
    `-Dgoogle.proto.folder=${googleProtoFolder}`,
    `-Dtest.proto.folder=${testProtoFolder}`,
  ];
  await buildStep("mvn", ["--batch-mode", "--quiet", ...folders, "compile"], { folder });
  const classes = join(folder, "target/classes");
  const libraries = readFileSync(join(folder, "target/classpath"), "utf8").trim();
  return [classes, libraries].join(delimiter);
});

/** Builds the program in `test/suites/clients/java/`, unless an earlier call has built it. */
export const buildJavaClient = async (): Promise<ClientProgram> => ({
  command: ["java", "-cp", await buildJava(), "plantstore.client.Main"],
});

/** The definitions from which grpcio's stub is generated, including imported ones. */
const grpcioDefinitions = [
  "google/api/annotations.proto",
  "google/api/http.proto",
  "plantstore/v1/plant_service.proto",
  "streams/v1/stream_service.proto",
];

const generatePython = once(async () => {
  const programs = await openPython(join(recipeFolder("python"), "requirements.txt"));
  const python = join(programs, "python");
  const folder = layOutRecipe("python");
  const environment = { PATH: [programs, process.env["PATH"]].join(delimiter) };
  mkdirSync(join(folder, "grpcio"), { recursive: true });
  const imports = [protoFolder, googleProtoFolder, testProtoFolder].flatMap((path) => ["-I", path]);
  const options = [...imports, "--python_out=grpcio", "--grpc_python_out=grpcio"];
  await buildStep(python, ["-m", "grpc_tools.protoc", ...options, ...grpcioDefinitions], { folder });
  const connect = ["generate", projectFolder, "--path", join(protoFolder, "plantstore")];
  await buildStep(buf, connect, { folder, environment });
  return { folder, python };
});

/** Prepares the programs in `test/suites/clients/python/`, unless an earlier call has. */
export async function buildPythonClient(program: string): Promise<ClientProgram> {
  const { folder, python } = await generatePython();
  return { command: [python, program], folder };
}

/** cargo's target folder, which all clients share because they use the same crates. */
export const cargoTarget: string = join(toolsFolder("client-rust"), "target");

const buildRust = once(async () => {
  const folder = layOutRecipe("rust");
  // The programs use equal crates, so one lock file suffices.
  const lock = readFileSync(join(projectFolder, "examples/clients/rust/Cargo.lock"), "utf8");
  writeFileSync(join(folder, "Cargo.lock"), lock.replace("plantstore-example", "plantstore-test-client"));
  const output = ["--as-file-descriptor-set", "-o", "definitions.binpb"];
  await buildStep(buf, ["build", ...definitions, ...output], { folder });
  await buildStep("cargo", ["build", "--locked"], { folder });
  return join(cargoTarget, "debug");
});

/** Builds the program in `test/suites/clients/rust/`, unless an earlier call has built it. */
export const buildRustClient = async (): Promise<ClientProgram> => ({
  command: [join(await buildRust(), "plantstore-test-client")],
});
