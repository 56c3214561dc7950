// The simulator of bindings/web/simulator.hpp, unpacked from the page: questions in, answers out.
const bytesOf = (base64) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));

const unpacked = async (id) => {
  const packed = new Blob([bytesOf(document.getElementById(id).textContent.trim())]);
  return new Response(packed.stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
};

const mostKept = 2000; // answers

// {ask(question), put(path, text), fileOf(path)}. Same questions have same answers until a file is put.
export const startSimulator = async () => {
  const [binary, files] = await Promise.all([unpacked("simulator"), unpacked("files")]);
  const module = await globalThis.makeSimulator({ wasmBinary: binary });
  let kept = new Map();
  const put = (path, text) => {
    module.ccall("dculab_put_file", null, ["string", "string"], [path, text]);
    kept = new Map();
  };
  const ask = (question) => {
    const text = JSON.stringify(question);
    if (!kept.has(text)) {
      if (kept.size >= mostKept) kept = new Map();
      kept.set(text, JSON.parse(module.ccall("dculab_answer", "string", ["string"], [text])));
    }
    return kept.get(text);
  };
  const shipped = JSON.parse(new TextDecoder().decode(files));
  for (const [path, text] of Object.entries(shipped)) put(path, text);
  return { ask, put, fileOf: (path) => shipped[path] };
};
