#!/usr/bin/env python3
"""Boundaries of the public functions: every function, constructor and method of include/sheafnn that others can call
says what happens to arguments that are wrong. One of these holds for each:

  checked    its docstring says what it throws: \\throws
  unchecked  its docstring says what must hold: "Unchecked: …"
  total      its docstring says that nothing can be wrong: "Takes any …"
  plain      it has no arguments that can be wrong, by the types in SOUND below, or it is deleted or defaulted

A docstring that says "as above" or begins with "The same" has the contract of the function before it in the same
scope. What the docstring of a class says holds for its members. What the comment of a file says holds for its
functions, but not in the modules that programs call first (MODULES_OF_USERS). Not public are the namespaces detail, apart
from bases of public classes, and what is private or protected.

usage: check_boundaries.py [ROOT] [--list [KIND] | --table]
Exit status 1 and a line for each function without contract, or with one that cannot hold (noexcept and \\throws).
"""
import collections
import pathlib
import re
import sys

MODULES_OF_USERS = {'bsnn', 'graph', 'io', 'uncertainty', 'cuda.hpp'}

# Types of arguments whose every value is in order, beside enumerations and the classes of the library, whose own
# constructors check what they are given (structs are open: who reads them checks them).
SOUND = {
    'bool': 'both values are in order',
    'nullptr_t': 'has one value',
    'Stream': 'an address of random numbers; too large a field is cut off and shares numbers with another address',
    'uint32_t': 'an id or a draw: a part of such an address', 'word_of_t': 'the same, or a pack of them',
    'Model': 'a template parameter: one of the models, which are classes',
    'Executor': 'a template parameter: an engine',
    'Use': 'something to be called', 'Body': 'something to be called', 'Call': 'something to be called',
    'Work': 'something to be called', 'Fill': 'something to be called', 'Finish': 'something to be called',
    'Step': 'something to be called', 'Kernel': 'something to be called', 'Ready': 'something to be called',
}
# Classes whose objects may be of the wrong size, or from elsewhere.
NOT_SOUND = {'MatrixView', 'FeatureView', 'NodeSelection', 'Buffer', 'Pack', 'PackMask', 'CochainRef'}

TOKEN = re.compile(r'''
    (?P<doc>///[^\n]*)
  | (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<pre>(?:(?<=\n)|\A)[ \t]*\#(?:[^\n\\]|\\.)*(?:\\\n(?:[^\n\\]|\\.)*)*)
  | (?P<raw>R"(?P<delim>[^(\s]*)\(.*?\)(?P=delim)")
  | (?P<str>"(?:[^"\\\n]|\\.)*")
  | (?P<chr>'(?:[^'\\\n]|\\.)+')
  | (?P<num>\.?[0-9](?:[0-9a-zA-Z_.]|[eEpP][+-]|'(?=[0-9a-fA-F]))*)
  | (?P<id>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<op>::|->|&&|\|\||<<=|<=>|[-+*/%&|^=!<>]=|\+\+|--|\.\.\.|[^\s])
  | (?P<space>\s+)
''', re.X | re.S)

class Token:
    __slots__ = ('kind', 'text', 'line')
    def __init__(self, kind, text, line): self.kind, self.text, self.line = kind, text, line
    def __repr__(self): return self.text

def tokens_of(text):
    out, line = [], 1
    for m in TOKEN.finditer(text):
        kind = m.lastgroup
        if kind == 'delim': kind = 'raw'
        s = m.group()
        if kind not in ('space', 'comment', 'pre'): out.append(Token(kind, s, line))
        line += s.count('\n')
    return out

OPEN, CLOSE = {'(': ')', '[': ']', '{': '}'}, {')', ']', '}'}

class Function:
    def __init__(self, **members):
        self.__dict__.update(members)


class Parser:
    """Finds the functions of a header: a reader of declarations, not of C++."""

    def __init__(self, path, text):
        self.path, self.tokens, self.at = path, tokens_of(text), 0
        self.functions, self.enumerations, self.classes, self.bases = [], set(), set(), set()
        self.file_doc = ''
        self.scope(len(self.tokens), [], True, '', False)

    def close(self, i):
        """The index behind the bracket that closes the one at i."""
        depth = 0
        while True:
            s = self.tokens[i].text if self.tokens[i].kind == 'op' else ''
            depth += (s in OPEN) - (s in CLOSE)
            i += 1
            if depth == 0:
                return i

    def angle(self, i):
        """The index behind the > that closes the < at i."""
        depth = 0
        while True:
            s = self.tokens[i].text if self.tokens[i].kind == 'op' else ''
            if s in OPEN:
                i = self.close(i)
                continue
            depth += (s == '<') - (s == '>')
            i += 1
            if depth == 0:
                return i

    def to_semicolon(self, i):
        """The index behind the next ; that is in no bracket."""
        while self.tokens[i].text != ';':
            i = self.close(i) if self.tokens[i].text in OPEN else i + 1
        return i + 1

    def constraint(self, i):
        """The index behind the constraint that begins at i, after `requires`."""
        t = self.tokens
        while True:
            while t[i].text == '!':
                i += 1
            if t[i].text == '(':
                i = self.close(i)
            elif t[i].text == 'requires':
                i += 1
                if t[i].text == '(':
                    i = self.close(i)
                i = self.close(i)
            else:
                while True:
                    i += 1
                    if t[i].text == '<':
                        i = self.angle(i)
                    if t[i].text != '::':
                        break
                    i += 1
            if t[i].text not in ('&&', '||'):
                return i
            i += 1

    def scope(self, end, names, public, class_doc, in_class):
        """Declarations of a namespace or a class, up to the token `end`."""
        doc = []
        while self.at < end:
            t = self.tokens[self.at]
            if t.kind == 'doc':
                if not t.text.startswith('///<'):
                    doc.append(t.text[3:].strip())
                self.at += 1
                continue
            text, doc = '\n'.join(doc), []
            if '\\file' in text:
                self.file_doc, text = text, ''
            if t.text == ';':
                self.at += 1
            elif t.text in ('public', 'private', 'protected') and self.tokens[self.at + 1].text == ':':
                public = t.text == 'public'
                self.at += 2
            elif re.fullmatch('SHEAFNN_[A-Z_]+', t.text) and self.tokens[self.at + 1].text == '(':
                self.at = self.close(self.at + 1)  # a macro that defines functions, where it is called
            else:
                self.declaration(names, public, class_doc, in_class, text)

    def declaration(self, names, public, class_doc, in_class, doc):
        t, i = self.tokens, self.at
        while True:
            if t[i].text == 'template' and t[i + 1].text == '<':
                i = self.angle(i + 1)
            elif t[i].text == 'requires':
                i = self.constraint(i + 1)
            elif t[i].text == '[' and t[i + 1].text == '[':
                i = self.close(i)
            elif re.fullmatch('SHEAFNN_[A-Z_]+', t[i].text):
                i += 1
            else:
                break
        if t[i].text == 'inline' and t[i + 1].text == 'namespace':
            i += 1
        if t[i].text == 'namespace':
            name, i = '', i + 1
            while t[i].text != '{':
                name += t[i].text
                i += 1
            stop = self.close(i)
            self.at = i + 1
            self.scope(stop - 1, names + name.split('::'), public, '', False)
            self.at = stop
            return
        if t[i].text in ('class', 'struct', 'union', 'enum'):
            if self.type_declaration(i, names, public, doc):
                return
        if t[i].text in ('using', 'typedef', 'static_assert', 'concept', 'extern'):
            self.at = self.to_semicolon(i)
            return
        found = self.find_parameters(i)
        if found is None:
            self.at = self.to_semicolon(i)
            return
        name, first = found
        before = t[first - 1 - (name.count(' ') + 1 if name.startswith('operator') else 1)].text
        outside = not in_class and before == '::'  # the definition of a member, which has its declaration
        stop = self.close(first)
        tail = self.skip_body(stop)
        guide = '->' in tail and tail.index('->') == 0 and t[i].text == name
        if public and not outside and not guide:
            self.functions.append(Function(path=self.path, line=t[i].line, name=name, names=names, doc=doc, tail=tail,
                                           class_doc=class_doc, in_class=in_class,
                                           parameters=self.split(first + 1, stop - 1)))

    def type_declaration(self, i, names, public, doc):
        """Reads a class, a struct or an enumeration. False where it is only the type of something else."""
        t, j, name, base = self.tokens, i + 1, None, False
        while t[j].text not in ('{', ';', '=', '('):
            if t[j].text == '<':
                j = self.angle(j)
            elif t[j].text == '[':
                j = self.close(j)
            else:
                if t[j].text == ':':
                    base = True
                elif base and t[j].kind == 'id' and public and 'detail' not in names:
                    self.bases.add(t[j].text)
                elif t[j].kind == 'id' and t[j].text not in ('class', 'final') and name is None:
                    name = t[j].text
                j += 1
        if t[j].text == ';':
            self.at = j + 1
            return True
        if t[j].text != '{':
            return False
        stop = self.close(j)
        if t[i].text == 'enum':
            self.enumerations.add(name)
        else:
            if t[i].text == 'class':
                self.classes.add(name)
            self.at = j + 1
            if public:
                self.scope(stop - 1, names + [name or 'unnamed'], t[i].text != 'class', doc, True)
        self.at = self.to_semicolon(stop)
        return True

    def find_parameters(self, i):
        """Name of the function that is declared at i, and the index of its parenthesis; None: it is none."""
        t, before = self.tokens, None
        while True:
            s = t[i].text if t[i].kind in ('op', 'id') else ''
            if s == 'operator':
                name, k = 'operator', i + 1
                if t[k].text in OPEN:
                    name, k = name + t[k].text + t[k + 1].text, k + 2
                while t[k].text != '(':
                    name += (' ' if t[k].kind == 'id' else '') + t[k].text
                    k += 1
                return name, k
            if s == '<' and before is not None and t[before].kind == 'id':
                i = self.angle(i)
                before = i - 1
            elif s == '(':
                if t[before].text in ('decltype', 'alignas', 'explicit', 'noexcept'):
                    i = self.close(i)
                    continue
                return (t[before].text, i) if t[before].kind == 'id' else None
            elif s in (';', '=', '{'):
                return None
            elif s == '[':
                i = self.close(i)
                before = i - 1
            else:
                before = i
                i += 1

    def skip_body(self, j):
        """Reads what stands behind parameters, and skips the body. Returns the words in between."""
        t, tail = self.tokens, []
        while True:
            s = t[j].text
            if s == ';':
                self.at = j + 1
                return tail
            if s == '=':
                tail += ['=', t[j + 1].text]
                self.at = self.to_semicolon(j)
                return tail
            if s == '{':
                self.at = self.close(j)
                return tail
            if s == ':':  # members are initialised
                while True:
                    while t[j].text not in ('(', '{'):
                        j = self.angle(j) if t[j].text == '<' else j + 1
                    j = self.close(j)
                    j += t[j].text == '...'
                    if t[j].text != ',':
                        break
                continue
            if s == '(':
                j = self.close(j)
            elif s == '->':
                tail.append(s)
                j += 1
                while t[j].text not in ('{', ';'):
                    j = self.angle(j) if t[j].text == '<' else self.close(j) if t[j].text in ('(', '[') else j + 1
            else:
                tail.append(s)
                j += 1

    def split(self, i, end):
        """The parameters in the tokens [i, end), each a list of tokens without its default value."""
        parameters, current, default = [], [], False
        t = self.tokens
        while i < end:
            s, stop = t[i].text, i + 1
            if t[i].kind == 'doc':
                i += 1
                continue
            if s == ',':
                parameters.append(current)
                current, default = [], False
                i += 1
                continue
            if s in OPEN:
                stop = self.close(i)
            elif s == '<' and current and current[-1].kind == 'id':
                stop = self.angle(i)
            default = default or s == '='
            if not default:
                current += t[i:stop]
            i = stop
        return parameters + [current] if current else parameters


def base_type(parameter):
    """The type of a parameter without const, reference, namespaces and template arguments; '' where it has no name."""
    words, i, depth = [], 0, 0
    for token in parameter:
        s = token.text
        depth += (s in OPEN or s == '<') - (s in CLOSE or s == '>')
        if depth == 0 and token.kind == 'id' and s not in ('const', 'typename', 'template'):
            words.append((i, s))
        i += 1
    text = ''.join(token.text for token in parameter)
    inner = re.match(r'(?:const)?std::type_identity_t<(\w+)', text)
    named = len(words) >= 2 and ('::' not in text or parameter[-1].kind == 'id' and parameter[-2].text != '::')
    if not named:
        return None  # not read
    if '*' in text:
        return '*'
    return inner.group(1) if inner else words[-2][1]


def show(function):
    parameters = []
    for parameter in function.parameters:
        text = ''
        for token in parameter:
            apart = text != '' and (text[-1].isalnum() or text[-1] in '>&*,_') and token.kind == 'id'
            text += ' ' * apart + token.text
        parameters.append(text)
    return f'{"::".join(function.names[1:] + [function.name])}({", ".join(parameters)})'


def contract(function, sound, file_doc, before):
    """The kind of contract that a function has, or None."""
    def said(doc):
        return ('checked' if '\\throws' in doc else 'unchecked' if re.search(r'\bUnchecked:', doc) else
                'total' if re.search(r'\b[Tt]akes any\b', doc) else None)
    if said(function.doc):
        return said(function.doc)
    if '=' in function.tail:
        return 'plain'
    types = [base_type(p) for p in function.parameters]
    if all(t is None or t in sound for t in types):
        return 'plain'
    if before and re.search(r'\b[Aa]s above\b|^The same\b', function.doc):
        return before
    module = function.path.split('/')[0]
    return said(function.class_doc) or (said(file_doc) if module not in MODULES_OF_USERS else None)


def check(files):
    """Contracts of the functions of {path: text}: a list of (function, kind or None)."""
    parsers = [Parser(path, text) for path, text in files.items()]
    bases = set().union(*(p.bases for p in parsers))
    sound = set(SOUND).union(*(p.enumerations | p.classes for p in parsers)) - NOT_SOUND
    result = []
    for parser in parsers:
        before, scope = None, None
        for f in parser.functions:
            if f.names[:1] != ['sheafnn']:
                continue
            inner = f.names[f.names.index('detail') + 1:] if 'detail' in f.names else None
            if inner is not None and not (inner and inner[0] in bases):
                continue
            if f.names != scope:
                before, scope = None, f.names
            kind = contract(f, sound, parser.file_doc, before)
            before = kind
            result.append((f, kind))
    return result


SAMPLE = '''
/// \\file
/// Samples. @FILE@
namespace sheafnn {
enum class Kind { a };
/// A class.
class Thing {
 public:
  explicit Thing(int size) : size_{size}, more_(0) {}   // open
  Thing(const Thing&) = delete;
  int size() const noexcept;
  /// \\throws std::invalid_argument  no
  template <class T> requires(sizeof(T) > 2) void set(Index i, const T& value);
  /// As above.
  void set(Index i);
  void put(std::span<const float> values, int (&more)[2]);   // open
  friend bool operator==(const Thing&, const Thing&) = default;
 private:
  void hidden(int i);
  int size_, more_;
};
/// Unchecked: i is in range.
struct Open {
  float operator()(Index i) const;
};
inline void Thing::hidden(int i) {}
[[nodiscard]] inline double f(Kind kind, bool b, const Thing& thing, Index) { return thing.size() > 1 ? 1 : 2; }
template <class T, int N = (3 > 2)> auto g(const Eigen::Matrix<T, N, 1>& x) -> T;   // open
/// Takes any x.
double h(double x);
namespace detail {
class Base { public: void base(int i); };   // open
class Other { public: void other(int i); };
}
class Derived : public detail::Base {};
constexpr int constant = h(3);
/// \\throws std::runtime_error  never
void wrong(int i) noexcept;   // open
}
'''


def check_itself():
    """The sample's functions are found, and those without contract refused."""
    for file_contract, expected in (('', ['Base::base', 'Thing', 'g', 'put', 'wrong']),
                                    ('Unchecked: all.', ['wrong'])):
        found = check({'core/sample.hpp': SAMPLE.replace('@FILE@', file_contract)})
        refused = sorted(('Base::' if f.name == 'base' else '') + f.name for f, kind in found if not kind or broken(f))
        if len(found) != 13 or refused != expected:
            sys.exit(f'check_boundaries.py reads its own sample wrongly: {len(found)} functions, refused {refused}')


def broken(function):
    return 'noexcept' in function.tail and '\\throws' in function.doc


def main():
    arguments = sys.argv[1:]
    options = [a for a in arguments if a.startswith('--')]
    root = pathlib.Path(arguments[0] if arguments and not arguments[0].startswith('--')
                        else pathlib.Path(__file__).parent.parent)
    check_itself()
    folder = root / 'include' / 'sheafnn'
    found = check({str(p.relative_to(folder)): p.read_text() for p in sorted(folder.rglob('*.hpp'))})
    if '--list' in options:
        wanted = arguments[arguments.index('--list') + 1:]
        for f, kind in found:
            if not wanted or str(kind).lower() in wanted:
                print(f'{f.path}:{f.line}: {kind}: {show(f)}')
        return
    kinds = ('checked', 'unchecked', 'total', 'plain')
    if '--table' in options:
        count = collections.Counter((f.path.split('/')[0], kind) for f, kind in found)
        print('| module | functions | checked | unchecked | takes any | nothing to check |')
        print('| --- | --- | --- | --- | --- | --- |')
        for module in sorted({module for module, kind in count}):
            numbers = [count[module, kind] for kind in kinds]
            print(f'| `{module}` | {sum(numbers)} | ' + ' | '.join(map(str, numbers)) + ' |')
        return
    failures = 0
    for f, kind in found:
        if kind is None:
            print(f'{f.path}:{f.line}: what may its arguments be? {show(f)}')
        elif broken(f):
            print(f'{f.path}:{f.line}: says \\throws and is noexcept: {show(f)}')
        else:
            continue
        failures += 1
    if len(found) < 1000:
        print(f'only {len(found)} functions were found')
        failures += 1
    total = collections.Counter(kind for f, kind in found)
    print(f'{len(found)} functions: ' + ', '.join(f'{total[k]} {k}' for k in kinds) + f', {failures} complaints')
    sys.exit(failures > 0)


if __name__ == '__main__':
    main()
