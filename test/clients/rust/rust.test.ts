import { describe } from "vitest";
import { describeClient } from "../../support/clients/describe-client.ts";
import { describeDocumented } from "../../support/clients/documented-client.ts";
import { buildRustClient } from "../../support/clients/rust-clients.ts";
import { hasProgram } from "../../support/process/tools-folder.ts";

describe.runIf(hasProgram("cargo"))("Rust", () => {
  // tonic says CANCELLED of a deadline that it has watched itself. The server, which watches it
  // too, may be the first to say so.
  describeClient({
    name: "tonic",
    build: () => buildRustClient("plantstore-test-client"),
    onDeadline: /^(?:1 Timeout expired|4 the operation timed out)$/,
  });
  describeDocumented({ language: "rust", build: () => buildRustClient("documented") });
});
