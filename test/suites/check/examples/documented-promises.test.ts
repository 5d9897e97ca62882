import { checkPromises } from "../../../../protoport/test/support/docs/check-promises.ts";

checkPromises("SECURITY.md", "the plant server promises");
