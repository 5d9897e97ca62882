import { projectFiles } from "@protoport/testing/process";
import { checkLinks } from "../../../support/docs/check-links.ts";

// No link leaves protoport/, so that the folder can be a repository.
checkLinks(
  projectFiles("protoport").filter((file) => file.endsWith(".md")),
  "protoport/",
);
