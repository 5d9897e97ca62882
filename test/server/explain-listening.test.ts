import { expect, test } from "vitest";
import { explainListening } from "../../src/server/explain-listening.ts";

const at = { host: "::1", port: 8080 };

test.each([
  { code: "EACCES", syscall: "listen", want: "PORT: [::1]:8080 may not be listened on by this user" },
  { code: "EAFNOSUPPORT", syscall: "listen", want: "HOST cannot be listened on: as the system says it" },
  { code: "EAI_AGAIN", syscall: "getaddrinfo", want: "HOST: ::1 is no address of this machine" },
])("$code of $syscall is explained by its setting", ({ want, ...fields }) => {
  const cause = Object.assign(new Error("as the system says it"), fields);
  expect(explainListening(cause, at)).toEqual(new Error(want, { cause }));
});

test.each([
  { name: "starting a worker", reason: Object.assign(new Error("spawn"), { code: "EACCES", syscall: "spawn" }) },
  { name: "a store", reason: Object.assign(new Error("cannot open"), { code: "ERR_STORE_OPEN" }) },
  { name: "no system", reason: new Error("the port was given up") },
])("an error of $name is left as it is", ({ reason }) => {
  expect(explainListening(reason, at)).toBe(reason);
});
