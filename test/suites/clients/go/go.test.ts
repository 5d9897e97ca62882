import { describe } from "vitest";
import { describeClient } from "../../../support/clients/describe-client.ts";
import { describeExample } from "../../../support/clients/example-client.ts";
import { buildGoClient, goClients } from "../../../support/clients/built-clients.ts";
import { hasProgram } from "@protoport/testing/process";

const environment = async (authorityFile: string) => ({ SSL_CERT_FILE: authorityFile });

describe.runIf(hasProgram("go"))("Go", () => {
  for (const name of goClients) describeClient({ name, build: () => buildGoClient(name) });
  describeExample({ language: "go", program: "main.go", environment });
});
