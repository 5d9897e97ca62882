// The floor has no credentials, routing or store. The response to each request, after its body, is the empty Connect
// JSON message.

// Uses `require`, because an `import` evaluates the module's lazy exports, which loads WebSocket and fetch.
const { createServer } = process.getBuiltinModule("node:http");
const server = createServer((request, response) => {
  request.resume().on("end", () => {
    response.writeHead(200, { "content-type": "application/json", "content-length": 2 }).end("{}");
  });
});
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  console.error(`port ${typeof address === "object" ? address?.port : address}`);
});
