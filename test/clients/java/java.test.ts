import { readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { describe } from "vitest";
import { buildStep } from "../../support/build-step.ts";
import { type ClientProgram, describeClient } from "../../support/client-program.ts";
import { layOutRecipe, protoFolder } from "../../support/client-recipe.ts";
import { completeProgram, describeDocumented } from "../../support/documented-client.ts";
import { hasProgram } from "../../support/tools-folder.ts";

let built: Promise<string> | undefined;

/** Generates and compiles both programs, once, and returns the class path. */
async function buildAll(): Promise<string> {
  const folder = layOutRecipe("java");
  const address = { authority: 'System.getenv("AUTHORITY")', url: 'System.getenv("URL")' };
  completeProgram(join(folder, "src/main/java/plantstore/client/Documented.java"), "java", address);
  await buildStep("mvn", ["--batch-mode", "--quiet", `-Dproto.folder=${protoFolder}`, "compile"], { folder });
  const classes = join(folder, "target/classes");
  const libraries = readFileSync(join(folder, "target/classpath"), "utf8").trim();
  return [classes, libraries].join(delimiter);
}

async function build(main: string): Promise<ClientProgram> {
  built ??= buildAll();
  return { command: ["java", "-cp", await built, `plantstore.client.${main}`] };
}

/** Java takes the authorities of the system out of a store of its own. */
async function buildTrusting(authorityFile: string): Promise<ClientProgram> {
  const store = ["-keystore", `${authorityFile}.p12`, "-storepass", "changeit"];
  await buildStep("keytool", ["-importcert", "-noprompt", "-alias", "authority", "-file", authorityFile, ...store]);
  const options = `-Djavax.net.ssl.trustStore=${authorityFile}.p12 -Djavax.net.ssl.trustStorePassword=changeit`;
  return { ...(await build("Documented")), environment: { JAVA_TOOL_OPTIONS: options } };
}

describe.runIf(hasProgram("java") && hasProgram("mvn"))("Java", () => {
  describeClient({ name: "grpc-java", build: () => build("Main") });
  describeDocumented({ language: "java", build: buildTrusting });
});
