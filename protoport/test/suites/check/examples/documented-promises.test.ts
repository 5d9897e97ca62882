import { checkPromises } from "../../../support/docs/check-promises.ts";

checkPromises("protoport/SECURITY.md", "the gateway promises");
