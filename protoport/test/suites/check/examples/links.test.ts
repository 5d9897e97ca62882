import { projectFiles } from "../../../../testing/src/project-files.ts";
import { checkLinks } from "../../../support/docs/check-links.ts";

// No link leaves protoport/, so that the folder can be a repository.
checkLinks(
  projectFiles("protoport").filter((file) => file.endsWith(".md")),
  "protoport/",
);
