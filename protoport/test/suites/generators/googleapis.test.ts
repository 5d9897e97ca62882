import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { create, createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import type { DescMessage, DescService, Message } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createGateway, type Gateway } from "../../../gateway/src/index.ts";
import { createOpenApi, readComments } from "../../../gateway/src/openapi/index.ts";
import { isRequired } from "../../../gateway/src/openapi/field-behavior.ts";
// oxfmt-ignore
import { buildClient, layOutGenerators, openApiGeneratorStep, pythonClientStep
} from "../../support/clients/generated-client.ts";
import type { Generator, GeneratorFolder, Step } from "../../support/clients/generated-client.ts";
import { buildLimitMs, buildStep, projectFolder } from "@protoport/testing/process";
import { fuzz, openSchemathesis } from "../../../testing/src/process/schemathesis.ts";

// Client generators and a fuzzer process Google's services, with their comments.

interface Package {
  readonly name: string;
  readonly omit?: readonly string[];
  /** The compilers' messages for generated clients that do not compile, by generator. */
  readonly broken?: Readonly<Record<string, string>>;
}

// oxfmt-ignore
const packages: readonly Package[] = [
  { name: "google.pubsub.v1" },
  { name: "google.cloud.secretmanager.v1" },
  { name: "google.cloud.kms.v1" },
  { name: "google.cloud.tasks.v2" },
  // Its rule for lists also matches every document's path.
  { name: "google.firestore.v1", omit: ["google.firestore.v1.Firestore.ListDocuments"],
    broken: { orval: "Duplicate identifier 'document'" } },
];

const types = ["--types", "node", "--typeRoots", join(projectFolder, "node_modules/@types")];
const libraries = ["--target", "es2024", "--lib", "es2024,dom,dom.iterable", "--module", "nodenext"];

/** Compiles generated TypeScript without a program that uses it. */
function typeScriptStep(file: string): Step {
  const options = ["--ignoreConfig", "--strict", "--skipLibCheck", "--outDir", "googleapis/out"];
  return ["tsc", ...options, ...libraries, ...types, file];
}

const javac =
  'javac -nowarn -d java/target/classes -cp "$(cat java/target/classpath)" $(find java/client/src/main -name "*.java")';

// oxfmt-ignore
const compiled: readonly Pick<Generator, "tool" | "steps">[] = [
  { tool: "openapi-fetch", steps: [["openapi-typescript", "openapi.json", "--output", "openapi-fetch/client/schema.ts"],
      typeScriptStep("openapi-fetch/client/schema.ts")] },
  { tool: "orval",
    steps: [["orval", "--config", "orval/orval.config.json"], typeScriptStep("orval/client/catalog.ts")] },
  { tool: "oapi-codegen", steps: [["go", "tool", "oapi-codegen", "-config", "oapi-codegen/config.yaml", "openapi.json"],
      ["go", "build", "./oapi-codegen/client"]] },
  { tool: "openapi-python-client",
    steps: [pythonClientStep, ["python", "-m", "compileall", "-q", "openapi-python-client/client"]] },
  { tool: "go",
    steps: [openApiGeneratorStep("go", "go/client", "packageName=client", "withGoMod=false", "enumClassPrefix=true"),
      ["go", "build", "./go/client"]] },
  { tool: "java",
    steps: [[...openApiGeneratorStep("java", "java/client"), "--model-name-mappings", "Schema=PubsubSchema"],
      ["mvn", "--batch-mode", "--quiet", "--file", "java/pom.xml", "initialize"], ["sh", "-c", javac]] },
];

// oxfmt-ignore
const called: readonly Generator[] = [
  { tool: "typescript-fetch", steps: [
      openApiGeneratorStep("typescript-fetch", "typescript-fetch/client", "importFileExtension=.js"),
      typeScriptStep("typescript-fetch/client/index.ts"),
    ], command: ["node", "googleapis/call.ts", "./out/index.js", "openapi.json"] },
  { tool: "python", steps: [openApiGeneratorStep("python", "python", "packageName=client")],
    command: ["env", "PYTHONPATH=python", "python", "googleapis/call.py"] },
];

const fuzzing = {
  // A body with undocumented members may be rejected.
  checks: "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
  mode: "positive",
  phases: "fuzzing",
  "max-examples": "3",
  // Client streams, which schemathesis cannot send.
  "exclude-path-regex": ":(listen|write)$",
};

let folder: GeneratorFolder;
let schemathesis: string;
let definition: Uint8Array;

beforeAll(async () => {
  [folder, schemathesis] = await Promise.all([layOutGenerators(), openSchemathesis()]);
  await buildStep("mvn", ["--batch-mode", "--quiet", "--file", "googleapis/pom.xml", "generate-sources"], folder);
  await buildStep("buf", ["build", "googleapis/protos", "-o", "googleapis.binpb"], folder);
  definition = readFileSync(join(folder.folder, "googleapis.binpb"));
}, buildLimitMs);

describe.each(packages)("$name", ({ name, omit = [], broken = {} }) => {
  const rest = { omit };
  let file: string;
  let gateway: Gateway;
  let url: string;
  let calls = 0;

  beforeAll(async () => {
    const services = [...createFileRegistry(fromBinary(FileDescriptorSetSchema, definition))]
      .filter((type) => type.kind === "service")
      .filter((type) => type.file.proto.package === name);
    // Documented in protoport/docs/how-to/openapi.md. Many of Google's comments contain patterns for names.
    const comments = new Map([...readComments(definition)].map(([of, text]) => [of, text.replaceAll("*/", "* /")]));
    const document = createOpenApi(services, { info: { title: name, version: "1" }, comments, rest });
    file = join(folder.folder, "openapi.json");
    writeFileSync(file, JSON.stringify(document));
    const routes = services.map((service) => [service, implement(service, () => calls++)] as const);
    gateway = createGateway({ rest, routes: (router) => routes.forEach((route) => router.service(...route)) });
    const { port } = await gateway.listen({ host: "127.0.0.1", port: 0 });
    url = `http://127.0.0.1:${port}`;
  });

  afterAll(() => gateway.close());

  test.each(compiled.filter(({ tool }) => !(tool in broken)))(
    "$tool generates a client that compiles",
    (each) => buildClient(each, folder),
    buildLimitMs,
  );

  test.each(compiled.filter(({ tool }) => tool in broken))(
    "$tool generates a client that does not compile, as documented",
    (each) => expect(buildClient(each, folder)).rejects.toThrow(broken[each.tool]),
    buildLimitMs,
  );

  test.each(called)(
    "openapi-generator for $tool generates a client that calls the service",
    async (generator) => {
      await buildClient(generator, folder);
      calls = 0;
      const [program, ...args] = generator.command;
      expect(Number(await buildStep(program, [...args, url], folder))).toBe(calls);
      expect(calls).toBeGreaterThanOrEqual(2);
    },
    buildLimitMs,
  );

  test(
    "schemathesis finds that all operations respond as described",
    async () => expect(await fuzz(schemathesis, file, url, fuzzing)).toBeGreaterThanOrEqual(10),
    buildLimitMs,
  );
});

/** Returns handlers that count their calls, and return a minimal valid response, or an empty stream. */
function implement(service: DescService, onCall: () => void): Partial<ServiceImpl<DescService>> {
  const handlers: Partial<ServiceImpl<DescService>> = {};
  const entries = service.methods.map(({ localName, methodKind, output }) => {
    const streams = methodKind === "server_streaming" || methodKind === "bidi_streaming";
    const handler = (): unknown => {
      onCall();
      return streams ? noMessages() : leastMessage(output);
    };
    return [localName, handler] as const;
  });
  return Object.assign(handlers, Object.fromEntries(entries));
}

/** Returns a message with its required message fields. Other empty fields need not be sent. */
function leastMessage(desc: DescMessage): Message {
  const required = desc.fields.filter((field) => field.fieldKind === "message").filter(isRequired);
  const set = required.map(({ localName, message }) => [localName, leastMessage(message)] as const);
  return Object.assign(create(desc), Object.fromEntries(set));
}

async function* noMessages(): AsyncGenerator<never> {}
