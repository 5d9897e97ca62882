import { describe } from "vitest";
import { buildStep, hasProgram } from "@protoport/testing/process";
import { describeClient } from "../../../support/clients/describe-client.ts";
import { describeExample } from "../../../support/clients/example-client.ts";
import { buildJavaClient } from "../../../support/clients/built-clients.ts";

/** Java reads trusted authorities from its own trust store. */
async function trusting(authorityFile: string): Promise<Readonly<Record<string, string>>> {
  const store = ["-keystore", `${authorityFile}.p12`, "-storepass", "changeit"];
  await buildStep("keytool", ["-importcert", "-noprompt", "-alias", "authority", "-file", authorityFile, ...store]);
  const options = `-Djavax.net.ssl.trustStore=${authorityFile}.p12 -Djavax.net.ssl.trustStorePassword=changeit`;
  return { JAVA_TOOL_OPTIONS: options };
}

describe.runIf(hasProgram("java") && hasProgram("mvn"))("Java", () => {
  describeClient({ name: "grpc-java", build: () => buildJavaClient() });
  describeExample({ language: "java", program: "src/main/java/DeletePlant.java", environment: trusting });
});
