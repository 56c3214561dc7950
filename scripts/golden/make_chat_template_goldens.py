"""Writes tests/golden/chat_templates.json: what Jinja2 makes of small templates and of templates in the style of model
families, with the settings of the transformers library (trim_blocks, lstrip_blocks, loop controls, a sandbox, its own
`tojson`).

    pip install jinja2==3.1.6
    python scripts/golden/make_chat_template_goldens.py
    python scripts/golden/make_chat_template_goldens.py FOLDER FILE  # of the templates FOLDER/*.jinja, into FILE

    {"jinja2": version, "variables": [{...}, ...],
     "cases": [{"template": ..., "variables": index, "output": ... or "fails": true}, ...]}
"""

import datetime
import json
import sys
from pathlib import Path

import jinja2
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

FILE = Path(__file__).resolve().parents[2] / "tests" / "golden" / "chat_templates.json"

# Each is run with VALUES.
SMALL = [
    # White space.
    "a\n{% if t %}\nb\n{% endif %}\nc\n",
    "  {% if t %}x{% endif %}\n  {{ s }}\n",
    "a  {%- if t -%}  b  {%- endif -%}  c",
    "a {{- s -}} b", "a\n\n {#- c -#} \n b", "{# one #}\nx\n  {# two #}\ny", "x{%+ if t %}y{% endif +%}\nz",
    "{% for m in l %}\n  - {{ m }}\n{% endfor %}\nend", "\n{{ s }}\n\n", "a\r\nb{% if t %}\r\nc{% endif %}",
    # Values and operators.
    "{{ 1 + 2 * 3 ** 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 8 / 2 }} {{ 2 ** 10 }} {{ -2 }}",
    "{{ 1.5 + 1 }} {{ 0.1 }} {{ 3.0 }} {{ 10 ** 3 * 1.0 }}",
    "{{ 'a' + 'b' ~ 1 ~ none ~ true }} {{ 'ab' * 2 }} {{ [1] + [2] }} {{ 'x' 'y' }}",
    "{{ 1 == 1.0 }} {{ 'a' != 'b' }} {{ 1 < 2 < 3 }} {{ 3 > 2 >= 2 }} {{ 'a' < 'b' }} {{ not t }} {{ not (t and f) }}",
    "{{ t and s }} {{ f or 'x' }} {{ none or 0 }} {{ [] and 1 }} {{ 1 if t }} {{ '' if f }}|{{ 'a' if f else 'b' }}",
    "{{ 'b' in 'abc' }} {{ 2 in [1, 2] }} {{ 'k' in d }} {{ 'z' not in d }} {{ 1 in missing }}",
    "{{ [1, 'a', none, true, 2.5, {'k': 'v'}] }} {{ {'a': 1} }} {{ (1, 2) | list }} {{ \"it's\" ~ ['it\\'s', 'say \"x\"'] }}",
    "{{ '\\n\\t\\\\\\'\\u00e9\\x41' }}|{{ \"\\\"\" }}",
    "{{ l[0] }} {{ l[-1] }} {{ l[9] }} {{ d['k'] }} {{ d.k }} {{ d.missing }} {{ s[0] }} {{ s[-1] }}",
    "{{ l[1:] }} {{ l[:-1] }} {{ l[::-1] }} {{ l[::2] }} {{ s[1:3] }} {{ s[::-1] }} {{ u[1:] }} {{ l[5:] }} {{ l[-2:][0] }}",
    # Statements.
    "{% set x = 1 %}{% set x = x + 1 %}{{ x }}{% set a, b = [3, 4] %}{{ a }}{{ b }}",
    "{% set x = 0 %}{% for m in l %}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }}",
    "{% set n = namespace(x=0, y='a') %}{% for m in l %}{% set n.x = n.x + m %}{% endfor %}{{ n.x }}{{ n.y }}",
    "{% set block %}\nx {{ s }}\n{% endset %}[{{ block }}]",
    "{% for m in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }} {% endfor %}",
    "{% for m in l %}{{ loop.previtem }}<{{ m }}>{{ loop.nextitem }}{% endfor %}",
    "{% for m in [] %}x{% else %}none{% endfor %}{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for m in l if m > 1 %}{{ loop.index }}:{{ m }} {% endfor %}{% for k in d %}{{ k }}{% endfor %}{% for c in s %}{{ c }}.{% endfor %}",
    "{% for m in l %}{% if m == 2 %}{% continue %}{% endif %}{{ m }}{% endfor %}{% for m in l %}{% if m == 2 %}{% break %}{% endif %}{{ m }}{% endfor %}",
    "{% for a in l %}{% for b in l %}{% if loop.first %}{{ a }}{{ b }}{% endif %}{% endfor %}{{ loop.last }}{% endfor %}",
    "{% if f %}a{% elif none %}b{% elif t %}c{% else %}d{% endif %}{% if missing %}x{% endif %}",
    "{% macro m(a, b='z', c=none) %}<{{ a }}{{ b }}{{ c }}>{% endmacro %}{{ m('x') }}{{ m('x', c=1) }}{{ m(b='q', a='p') }}{{ m() }}",
    "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}",
    "{% set x = 'out' %}{% macro m() %}{{ x }}{% endmacro %}{% for i in l %}{% set x = i %}{{ m() }}{% endfor %}",
    # Filters.
    "{{ '  x y \n' | trim }}|{{ '--x-' | trim('-') }}|{{ 5 | trim }}|{{ missing | trim }}|{{ '\u00a0x\u2003' | trim }}",
    "{{ 'aBc dEf' | upper }} {{ 'aBc' | lower }} {{ 'aBC d' | capitalize }} {{ 'ab cd-ef (gh' | title }} {{ '\u00e4\u00d6' | upper }}",
    "{{ l | length }} {{ s | length }} {{ u | length }} {{ d | count }} {{ missing | length }}",
    "{{ d | tojson }} {{ [1, 2.0, none, true, '\"\\n\u00e9<'] | tojson }} {{ {} | tojson }} {{ [] | tojson(indent=2) }}",
    "{{ {'a': [1, {'b': 2}], 'c': {}} | tojson(indent=4) }}",
    "{{ missing | default('x') }} {{ none | default('x') }} {{ '' | default('x', true) }} {{ missing | d }}|{{ 0 | default(5, boolean=true) }}",
    "{{ l | join(', ') }} {{ ['a', 'b'] | join }} {{ ms | join('-', attribute='role') }} {{ ms | map(attribute='role') | list }}",
    "{{ ['a', 'B'] | map('upper') | join }} {{ ms | selectattr('role', 'equalto', 'user') | list | length }}",
    "{{ ms | selectattr('content') | list | length }} {{ ms | rejectattr('role', 'eq', 'user') | map(attribute='content') | join }}",
    "{{ l | select('odd') | list }} {{ l | reject('odd') | list }} {{ [0, 1, ''] | select | list }} {{ none | select | list }}",
    "{{ 'abcabc' | replace('b', 'x') }} {{ 'aaa' | replace('a', 'b', 2) }} {{ l | first }} {{ l | last }} {{ [] | first }}",
    "{{ l | reverse | list }} {{ 'abc' | reverse }} {{ '42' | int + 1 }} {{ 'x' | int(7) }} {{ 3.9 | int }} {{ 5 | string ~ 'x' }}",
    "{% for k, v in {'b': 1, 'A': 2} | dictsort %}{{ k }}{{ v }}{% endfor %} {% for k, v in d | items %}{{ k }}{{ v }}{% endfor %} {{ '<b>' | safe }} {{ 'ab' | list }}",
    # Tests.
    "{{ s is defined }} {{ missing is defined }} {{ missing is undefined }} {{ none is none }} {{ s is not none }} {{ raise_exception is defined }}",
    "{{ s is string }} {{ l is string }} {{ l is sequence }} {{ s is sequence }} {{ d is mapping }} {{ l is mapping }} {{ missing is sequence }}",
    "{{ l is iterable }} {{ 3 is iterable }} {{ 3 is number }} {{ true is number }} {{ 3 is integer }} {{ true is integer }} {{ 2.5 is float }}",
    "{{ t is true }} {{ 1 is true }} {{ f is false }} {{ t is boolean }} {{ 3 is odd }} {{ 4 is even }} {{ 9 is divisibleby 3 }} {{ 2 is in l }} {{ 1 is eq 1 }} {{ 1 is ne(2) }}",
    "{% if s is defined and s is not none and s is string %}y{% endif %}{{ 'a' if missing is defined else 'b' }}",
    # Methods and functions.
    "{{ '  x '.strip() }}|{{ 'xxaxx'.strip('x') }}|{{ ' a'.lstrip() }}|{{ 'a \n'.rstrip() }}|{{ 'ab'.upper() }}{{ 'AB'.lower() }}",
    "{{ 'a,b,,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a,b,c'.split(',', 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ 'a</t>b'.split('</t>')[-1] }}",
    "{{ 'abc'.startswith('ab') }} {{ 'abc'.endswith('x') }} {{ 'abc'.replace('b', '') }} {{ 'abcb'.find('b') }} {{ 'abab'.count('ab') }} {{ ', '.join(['a', 'b']) }}",
    "{{ d.get('k') }} {{ d.get('x') }} {{ d.get('x', 'y') }} {{ d.keys() | list }} {{ d.values() | list }} {% for k, v in d.items() %}{{ k }}{{ v }}{% endfor %}",
    "{{ range(3) | list }} {{ range(1, 4) | list }} {{ range(5, 0, -2) | list }} {{ dict(a=1, b='x') }} {{ 'capital'.capitalize() }}",
    # What fails.
    "{{ raise_exception('no') }}", "{{ missing.x }}", "{{ missing['x'] }}", "{{ 'a' + 1 }}", "{{ 1 < 'a' }}", "{{ missing + 'a' }}",
    "{{ 1 / 0 }}", "{{ none.x.y }}", "{{ s.x.y }}", "{{ 3 | length }}", "{% for x in 3 %}{% endfor %}", "{{ missing | tojson }}",
    "{% set a, b = [1, 2, 3] %}", "{{ missing.strip() }}", "{% set q.x = 1 %}", "{{ l[::0] }}", "{{ 'x' is odd }}",
]
VALUES = {
    "s": "text", "u": "\u00e4\u4e2d\U0001f600x", "t": True, "f": False, "l": [1, 2, 3], "d": {"k": "v", "n": 2},
    "ms": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": ""}, {"role": "user", "content": "bye"}],
}

# In the style of families, written for this test.
FAMILIES = [
    # Turns between two markers.
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] | trim + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
    # A default system message, headers, and the beginning of the text before the first of them.
    "{{- bos_token }}\n{%- if messages[0]['role'] == 'system' %}\n    {%- set system = messages[0]['content'] | trim %}\n"
    "    {%- set messages = messages[1:] %}\n{%- else %}\n    {%- set system = 'Be helpful.' %}\n{%- endif %}\n"
    "{{- '<|header|>system<|end|>\\n\\n' }}{{- system }}{{- '<|eot|>' }}\n"
    "{%- for message in messages %}\n    {%- if not (message.role == 'tool' or 'tool_calls' in message) %}\n"
    "        {{- '<|header|>' ~ message.role ~ '<|end|>\\n\\n' ~ message.content | trim ~ '<|eot|>' }}\n    {%- endif %}\n"
    "{%- endfor %}\n{%- if add_generation_prompt %}\n    {{- '<|header|>assistant<|end|>\\n\\n' }}\n{%- endif %}\n",
    # Roles that must alternate, instructions in brackets.
    "{%- if messages[0].role == 'system' %}{%- set system = messages[0].content %}{%- set turns = messages[1:] %}"
    "{%- else %}{%- set turns = messages %}{%- endif %}{{- bos_token }}{%- for m in turns %}"
    "{%- if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{- raise_exception('Roles must alternate user/assistant/user/assistant') }}{%- endif %}"
    "{%- if m.role == 'user' %}{%- if loop.last and system is defined %}{{- '[INST] ' + system + '\\n\\n' + m.content + ' [/INST]' }}"
    "{%- else %}{{- '[INST] ' + m.content + ' [/INST]' }}{%- endif %}{%- elif m.role == 'assistant' %}{{- ' ' + m.content | trim + eos_token }}"
    "{%- else %}{{- raise_exception('Only user and assistant roles are supported!') }}{%- endif %}{%- endfor %}",
    # Reasoning cut from earlier answers, with a namespace and a walk from the end.
    "{%- set ns = namespace(last=messages | length - 1, searching=true) %}\n{%- for m in messages[::-1] %}\n"
    "    {%- set index = (messages | length - 1) - loop.index0 %}\n    {%- if ns.searching and m.role == 'user' %}\n"
    "        {%- set ns.searching = false %}\n        {%- set ns.last = index %}\n    {%- endif %}\n{%- endfor %}\n"
    "{%- for m in messages %}\n    {%- if m.content is string %}\n        {%- set content = m.content %}\n    {%- else %}\n"
    "        {%- set content = '' %}\n    {%- endif %}\n    {%- if m.role == 'assistant' %}\n        {%- set thought = '' %}\n"
    "        {%- if '</think>' in content %}\n            {%- set thought = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}\n"
    "            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}\n        {%- endif %}\n"
    "        {%- if loop.index0 > ns.last and thought %}\n            {{- '<|assistant|>' ~ thought ~ '|' ~ content }}\n        {%- else %}\n"
    "            {{- '<|assistant|>' ~ content }}\n        {%- endif %}\n    {%- else %}\n        {{- '<|' ~ m.role ~ '|>' ~ content }}\n    {%- endif %}\n"
    "{%- endfor %}\n{%- if add_generation_prompt %}\n    {{- '<|assistant|>' }}\n    {%- if enable_thinking is defined and enable_thinking is false %}{{- '<none>' }}{%- endif %}\n{%- endif %}",
    # Tools, by a macro that calls itself for what is nested.
    "{%- macro shape(spec, depth=0) -%}\n{%- if spec.type == 'object' -%}\n{ {%- for name, each in spec.properties | dictsort -%}\n"
    "{{ name }}{{ '?' if name not in (spec.required or []) }}: {{ shape(each, depth + 1) }}{{ ', ' if not loop.last }}\n{%- endfor -%} }\n"
    "{%- elif spec.enum is defined -%}{{ spec.enum | map('string') | join(' | ') }}\n{%- else -%}{{ spec.type | default('any') }}\n{%- endif -%}\n{%- endmacro -%}\n"
    "{%- if tools %}{%- for tool in tools %}{{ tool.function.name }}{{ shape(tool.function.parameters) }}\n{{ tool | tojson }}\n{% endfor %}{%- endif %}"
    "{%- for m in messages %}{% generation %}{{ m.role | upper }}: {{ m.content }}{{ eos_token if loop.last else '' }}{% endgeneration %}\n{% endfor %}",
]
TALKS = [
    [{"role": "user", "content": " Hello \n"}],
    [{"role": "system", "content": "Be brief. "}, {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?\n"}, {"role": "user", "content": "\u4f60\u597d \U0001f44b"}],
    [{"role": "user", "content": "a"}, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nb"}, {"role": "user", "content": "c"}, {"role": "assistant", "content": "<think>\nso\n</think>\nd"}],
    [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}],
    [{"role": "tool", "content": "3"}],
]
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "required": ["city"], "properties": {
    "days": {"type": "integer", "enum": [1, 2]}, "city": {"type": "string"}, "at": {"type": "object", "properties": {"x": {}}}}}}}]


def environment():
    made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, Generation])
    made.filters["tojson"] = lambda value, indent=None: json.dumps(value, ensure_ascii=False, indent=indent)
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = lambda format: datetime.datetime.now().strftime(format)
    return made


class Generation(jinja2.ext.Extension):
    """{% generation %}, which marks what is trained on."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("itself"), [], [], body).set_lineno(line)

    def itself(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def case(template, index, variables):
    try:
        return {"template": template, "variables": index, "output": environment().from_string(template).render(**variables)}
    except Exception:  # whatever Python raises
        return {"template": template, "variables": index, "fails": True}


def main():
    small, families, tools, file = SMALL, FAMILIES, {"tools": TOOLS}, FILE
    if len(sys.argv) > 1:  # as the server runs them
        small, tools, file = [], {}, Path(sys.argv[2])
        families = [path.read_text(encoding="utf-8") for path in sorted(Path(sys.argv[1]).glob("*.jinja"))]
    sets = [VALUES]
    for messages in TALKS:
        for prompt in (True, False):
            talk = {"messages": messages, "add_generation_prompt": prompt, "bos_token": "<s>", "eos_token": "</s>"}
            sets.append(talk | (tools if prompt else {}))
    cases = [case(template, 0, VALUES) for template in small]
    for template in families:
        cases += [case(template, index, talk) for index, talk in enumerate(sets) if index > 0]

    def lines(values):
        return ",\n".join("  " + json.dumps(each, ensure_ascii=True) for each in values)

    file.write_text(
        f'{{"jinja2": "{jinja2.__version__}",\n "variables": [\n{lines(sets)}],\n "cases": [\n{lines(cases)}\n]}}\n',
        encoding="utf-8",
    )
    print(f"{len(cases)} cases, {sum('fails' in each for each in cases)} of them fail")


main()
