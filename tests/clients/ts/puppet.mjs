// The official TypeScript client (v1) on strings: JSON commands on stdin, JSON answers on stdout.
//   puppet.mjs ws|http ADDRESS   (the key is in DUDUCLAW_MCP_API_KEY)
import { createInterface } from 'node:readline';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import WebSocket from 'ws';

const [kind, address] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${process.env.DUDUCLAW_MCP_API_KEY}` };

// The library's own WebSocket transport cannot send headers.
class WebSocketTransport {
  start() {
    this.socket = new WebSocket(address, ['mcp'], { headers });
    this.socket.on('message', (data) => this.onmessage?.(JSON.parse(data)));
    this.socket.on('close', () => this.onclose?.());
    this.socket.on('error', (error) => this.onerror?.(error));
    return new Promise((resolve, reject) => this.socket.once('open', resolve).once('error', reject));
  }
  async send(message) {
    this.socket.send(JSON.stringify(message));
  }
  async close() {
    this.socket.close();
  }
}

const say = (body) => process.stdout.write(`${JSON.stringify(body)}\n`);
const client = new Client({ name: 'puppet', version: '1' });
let changed = 0;
let news = () => {};
client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
  changed += 1;
  news();
});

async function obey(order) {
  if (order.do === 'list') return (await client.listTools()).tools.map((tool) => tool.name).sort();
  if (order.do === 'call') {
    try {
      const result = await client.callTool({ name: order.name, arguments: order.arguments });
      return { isError: result.isError ?? false, structured: result.structuredContent };
    } catch (error) {
      return { code: error.code, message: error.message };
    }
  }
  while (changed < order.count) await new Promise((resolve) => { news = resolve; });
  return changed;
}

const transport = kind === 'ws'
  ? new WebSocketTransport()
  : new StreamableHTTPClientTransport(new URL(address), { requestInit: { headers } });
await client.connect(transport);
say({
  revision: transport.protocolVersion ?? null,
  listChanged: client.getServerCapabilities().tools.listChanged,
});
for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line);
  say({ order: order.number, answer: await obey(order) });
}
await client.close();
process.exit(0);
