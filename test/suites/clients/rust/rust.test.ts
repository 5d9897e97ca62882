import { describe } from "vitest";
import { describeClient } from "../../../support/clients/describe-client.ts";
import { describeExample } from "../../../support/clients/example-client.ts";
import { buildRustClient, cargoTarget } from "../../../support/clients/built-clients.ts";
import { hasProgram } from "@protoport/testing/process";

describe.runIf(hasProgram("cargo"))("Rust", () => {
  // tonic reports CANCELLED when its own deadline timer fires first, and otherwise the server's error.
  const onDeadline = /^(?:1 Timeout expired|4 the operation timed out)$/;
  describeClient({ name: "tonic", build: () => buildRustClient(), onDeadline });
  describeExample({
    language: "rust",
    program: "src/main.rs",
    environment: async (authorityFile) => ({ SSL_CERT_FILE: authorityFile, CARGO_TARGET_DIR: cargoTarget }),
  });
});
